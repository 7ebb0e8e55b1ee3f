// Elements. Text from the data only ever becomes text nodes, never markup.

function byId(id) {
  return document.getElementById(id);
}

/** An element with attributes and children; a child may be a node, a text, or nothing. */
function make(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== "") node.append(child);
  return node;
}

/** A key that may be broken after its underscores. */
function breakable(key) {
  return key.split(/(?<=[_.])/).flatMap((part, index) => index === 0 ? [part] : [make("wbr"), part]);
}

/**
 * A table. Columns have a `title`, the `cell` of a row (a node or a text), and `number` if they are aligned right.
 * The first column names its row. `of(row)` may add a class to the row.
 */
function table(caption, columns, rows, of) {
  const head = columns.map((column) =>
      make("th", {scope: "col", class: column.number ? "number" : column.class || ""}, column.title));
  const body = rows.map((row) => make("tr", {class: (of && of(row)) || ""}, columns.map((column, index) =>
      make(index === 0 ? "th" : "td",
           Object.assign({class: column.number ? "number" : column.class || ""}, index === 0 ? {scope: "row"} : {}),
           column.cell(row)))));
  return make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
}

/** A bar in a table: parts of [colour, width as a share of the track], after an offset. */
function track(parts, offset = 0) {
  const bar = make("div", {class: "track", "aria-hidden": "true"});
  if (offset > 0) bar.append(make("span", {style: `width:${100 * offset}%`}));
  for (const [colour, share] of parts) {
    if (share > 0) bar.append(make("span", {style: `width:${100 * share}%;background:var(--${colour})`}));
  }
  return bar;
}

function legend(id, entries) {
  byId(id).append(...entries.map(([colour, text]) =>
      make("li", {}, make("span", {class: "swatch", style: `background:var(--${colour})`}), text)));
}

const tooltip = {
  /** Shows nodes beside a point of the page, and keeps them inside the window. */
  show(x, y, ...nodes) {
    const box = byId("tooltip");
    box.replaceChildren(...nodes);
    box.hidden = false;
    const width = document.documentElement.clientWidth;
    box.style.left = Math.max(4, Math.min(x + 14, window.scrollX + width - box.offsetWidth - 8)) + "px";
    const below = y + 16;
    const room = window.scrollY + window.innerHeight - box.offsetHeight - 8;
    box.style.top = (below > room ? Math.max(window.scrollY + 4, y - box.offsetHeight - 12) : below) + "px";
  },
  hide() {
    byId("tooltip").hidden = true;
  },
};

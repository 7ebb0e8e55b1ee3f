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

/** A key that may be broken after its underscores, dots and plus signs. */
function breakable(key) {
  return key.split(/(?<=[_.+])/).flatMap((part, index) => index === 0 ? [part] : [make("wbr"), part]);
}

/** The cells of a row of a table, below. */
function tableCells(columns, row) {
  const cells = [];
  for (let index = 0; index < columns.length;) {
    const column = columns[index];
    const span = column.spans ? column.spans(row) : 1;
    const attributes = {class: span === 1 && column.number ? "number" : column.class || ""};
    if (index === 0) attributes.scope = "row";
    if (span > 1) attributes.colspan = span;
    cells.push(make(index === 0 ? "th" : "td", attributes, column.cell(row)));
    index += span;
  }
  return cells;
}

/**
 * A table. Columns have a `title`, the `cell` of a row (a node or a text), and `number` if they are aligned right.
 * The first column names its row. `spans(row)` of a column says over how many columns its cell goes, 1 by default.
 * `of(row)` may add a class to the row.
 */
function table(caption, columns, rows, of) {
  const head = columns.map((column) =>
      make("th", {scope: "col", class: column.number ? "number" : column.class || ""}, column.title));
  const body = rows.map((row) => make("tr", {class: (of && of(row)) || ""}, tableCells(columns, row)));
  return make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, head)), make("tbody", {}, body));
}

/** Orders values of a column; those that are missing come last either way. */
function ordered(a, b, ascending) {
  const missing = (value) => value === null || value === undefined;
  if (missing(a) || missing(b)) return (missing(a) ? 1 : 0) - (missing(b) ? 1 : 0);
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
  return ascending ? order : -order;
}

/** Rows of a long table that are shown before all are asked for. */
const firstRows = 200;

/**
 * A table as above, below which columns with a `value` can be put in its order by the buttons in their heads. `sorted` may
 * be a column that is in order at first, as [index, ascending].
 */
function sortableTable(caption, columns, rows, of, sorted = null) {
  const box = make("div", {});
  let order = sorted;
  let all = rows.length <= firstRows;
  const fill = (focused) => {
    const list = [...rows];
    if (order !== null) {
      const [index, ascending] = order;
      list.sort((a, b) => ordered(columns[index].value(a), columns[index].value(b), ascending));
    }
    const made = table(caption, columns, all ? list : list.slice(0, firstRows), of);
    made.querySelectorAll("thead th").forEach((head, index) => {
      if (columns[index].value === undefined) return;
      const state = order === null || order[0] !== index ? "none" : order[1] ? "ascending" : "descending";
      head.setAttribute("aria-sort", state);
      const button = make("button", {type: "button", class: "sort"}, ...head.childNodes,
          make("span", {class: "arrow", "aria-hidden": "true"}, {none: "", ascending: " ▲", descending: " ▼"}[state]));
      button.addEventListener("click", () => {
        order = [index, order === null || order[0] !== index ? true : !order[1]];
        fill(index);
      });
      head.replaceChildren(button);
    });
    box.replaceChildren(made);
    if (focused !== undefined) made.querySelectorAll("thead th")[focused].querySelector("button").focus();
    if (all) return;
    const button = make("button", {type: "button"}, `Show all ${whole(rows.length)} rows`);
    button.addEventListener("click", () => {
      all = true;
      fill();
    });
    box.append(make("p", {class: "controls"}, button));
  };
  fill();
  return box;
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

// A map of two varied keys: a table whose cells are coloured by one number.

/** Relative luminance of "#rrggbb" or "rgb(r, g, b)", as WCAG defines it. */
function luminance(text) {
  const {r, g, b} = d3.rgb(text);
  const linear = [r, g, b].map((value) => value / 255).map((value) =>
      value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

/** Black or white, whichever can be read better. */
function inkOn(background) {
  return luminance(background) > 0.179 ? "#000000" : "#ffffff";
}

class HeatMap {
  constructor() {
    this.byPlace = new Map(points.map((point) => [this.key(data.axes.map((axis) => axis.positions[point.index])), point]));
    this.held = data.axes.map((axis) => axis.positions[data.best]);
    [this.rows, this.columns] = this.firstPair();
    this.metric = metricOf("tokens_per_s_per_gpu");
    this.at = null;
    this.addControls();
    drawn(() => this.draw());
  }

  key(positions) {
    return positions.join(" ");
  }

  /** The axis with most values goes across. */
  firstPair() {
    const order = data.axes.map((_, index) => index).sort((a, b) => data.axes[b].values.length - data.axes[a].values.length);
    return [order[1], order[0]];
  }

  addSelect(label, options, value, change) {
    const select = make("select", {}, options.map(([name, text]) => make("option", {value: name}, text)));
    select.value = value;
    select.addEventListener("change", () => {
      change(select.value);
      this.draw();
    });
    byId("map-controls").append(make("label", {}, label + " ", select));
  }

  addControls() {
    byId("map-controls").replaceChildren();
    this.addSelect("Show", metrics.map((metric) => [metric.id, metric.name]), this.metric.id, (id) => { this.metric = metricOf(id); });
    if (data.axes.length === 2) return;
    const names = data.axes.map((axis, index) => [index, axisName(axis)]);
    const choose = (part, other) => (value) => {
      if (this[other] === Number(value)) this[other] = this[part];
      this[part] = Number(value);
      this.addControls();
    };
    this.addSelect("Down", names, this.rows, choose("rows", "columns"));
    this.addSelect("Across", names, this.columns, choose("columns", "rows"));
    data.axes.forEach((axis, index) => {
      if (index === this.rows || index === this.columns) return;
      this.addSelect(axisName(axis), axis.values.map((_, position) => [position, positionText(axis, position)]), this.held[index],
          (value) => { this.held[index] = Number(value); });
    });
  }

  pointAt(row, column) {
    const positions = [...this.held];
    positions[this.rows] = row;
    positions[this.columns] = column;
    return this.byPlace.get(this.key(positions));
  }

  /** All points of the map that fit. */
  fitting() {
    const all = data.axes[this.rows].values.flatMap((_, row) => data.axes[this.columns].values.map((__, column) => this.pointAt(row, column)));
    return all.filter((point) => point !== undefined && fits(point));
  }

  cell(row, column, scale, best) {
    const point = this.pointAt(row, column);
    const cell = make("td", {role: "gridcell", tabindex: "-1"});
    cell.dataset.row = row;
    cell.dataset.column = column;
    if (point === undefined) {
      cell.className = "nothing";
      cell.setAttribute("aria-label", pointsLeftOut > 0 ? "left out of this page" : "no point");
      return cell;
    }
    cell.setAttribute("aria-label", pointSentence(point));
    const text = isLegal(point) ? this.metric.write(point[this.metric.id]) : "illegal";
    cell.textContent = text;
    if (!fits(point)) {
      cell.className = isLegal(point) ? "misfit" : "illegal";
    } else {
      const background = scale(point[this.metric.id]);
      cell.style.background = background;
      cell.style.color = inkOn(background);
      if (point === best) cell.className = "best";
    }
    cell.addEventListener("mousemove", (event) => showPointTip(event, point));
    cell.addEventListener("mouseleave", () => tooltip.hide());
    return cell;
  }

  draw() {
    const [rows, columns] = [data.axes[this.rows], data.axes[this.columns]];
    const fitting = this.fitting();
    const value = (point) => point[this.metric.id];
    const [low, high] = fitting.length > 0 ? d3.extent(fitting, value) : [0, 1];
    const tones = d3.interpolateRgb(colour("map-low"), colour("map-high"));
    const scale = (number_) => tones(high > low ? (number_ - low) / (high - low) : 0.5);
    const best = fitting.length === 0 ? null : fitting.reduce((a, b) => (this.metric.less ? value(b) < value(a) : value(b) > value(a)) ? b : a);
    const head = [make("th", {scope: "col"}, `${axisName(rows)} ↓ ${axisName(columns)} →`),
      ...columns.values.map((_, column) => make("th", {scope: "col", class: "number"}, positionText(columns, column)))];
    const body = rows.values.map((_, row) => make("tr", {role: "row"}, make("th", {scope: "row", role: "rowheader"}, positionText(rows, row)),
        columns.values.map((__, column) => this.cell(row, column, scale, best))));
    for (const each of head) each.setAttribute("role", "columnheader");
    this.table = make("table", {class: "map", role: "grid", "aria-label": `${this.metric.name} by ${axisName(rows)} and ${axisName(columns)}`},
        make("thead", {}, make("tr", {role: "row"}, head)), make("tbody", {}, body));
    byId("map-table").replaceChildren(this.table);
    byId("map-lead").textContent = this.lead(best);
    this.showLegend(low, high, fitting.length);
    this.listen();
  }

  lead(best) {
    const held = data.axes.map((axis, index) => [axis, index]).filter(([, index]) => index !== this.rows && index !== this.columns)
        .map(([axis, index]) => `${axisName(axis)} ${positionText(axis, this.held[index])}`);
    const others = held.length === 0 ? "" : `With ${held.join(", ")}. `;
    if (best === null) return others + "No cell fits into memory.";
    return others + `${this.metric.name}, ${this.metric.less ? "lowest" : "highest"} of what fits: ${this.metric.write(best[this.metric.id])} with ` +
        `${axisName(data.axes[this.rows])} ${positionText(data.axes[this.rows], data.axes[this.rows].positions[best.index])} and ` +
        `${axisName(data.axes[this.columns])} ${positionText(data.axes[this.columns], data.axes[this.columns].positions[best.index])}.`;
  }

  showLegend(low, high, count) {
    const entries = count === 0 ? [] : [["map-low", this.metric.write(low)], ["map-high", this.metric.write(high)]];
    byId("map-legend").replaceChildren(...entries.map(([tone, text]) =>
        make("li", {}, make("span", {class: "swatch", style: `background:var(--${tone})`}), text)),
        make("li", {}, make("span", {class: "swatch best"}), this.metric.less ? "lowest" : "highest"),
        make("li", {}, make("span", {class: "swatch misfit"}), "does not fit"),
        make("li", {}, make("span", {class: "swatch illegal"}), "not legal"),
        pointsLeftOut > 0 ? make("li", {}, "empty: left out of this page") : "");
  }

  listen() {
    const cells = [...this.table.querySelectorAll("td")];
    const width = data.axes[this.columns].values.length;
    const height = data.axes[this.rows].values.length;
    let current = 0;
    cells[0].tabIndex = 0;
    const go = (index) => {
      cells[current].tabIndex = -1;
      current = index;
      cells[current].tabIndex = 0;
      cells[current].focus();
    };
    this.table.addEventListener("focusin", (event) => {
      const index = cells.indexOf(event.target);
      if (index >= 0) byId("map-selected").textContent = cells[index].getAttribute("aria-label");
    });
    this.table.addEventListener("click", (event) => {
      if (cells.includes(event.target)) go(cells.indexOf(event.target));
    });
    this.table.addEventListener("keydown", (event) => {
      const [row, column] = [Math.floor(current / width), current % width];
      const to = {ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], ArrowUp: [row - 1, column],
        ArrowDown: [row + 1, column], Home: [row, 0], End: [row, width - 1]}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      if (to[0] >= 0 && to[0] < height && to[1] >= 0 && to[1] < width) go(to[0] * width + to[1]);
    });
  }
}

function showMap() {
  if (data.axes.length < 2 || data.best === null) {
    byId("map").remove();
    return;
  }
  new HeatMap();
}

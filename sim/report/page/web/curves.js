// Curves over one varied key each, the others being as in the best point.

/** Numbers spread over more than this factor are shown on a logarithmic scale. */
const wideRange = 6;
/** Curves of other points that are drawn in grey at most. */
const mostOthers = 24;

/** Where a position of an axis lies: numbers at their place, other values side by side. */
function positionScale(axis, from, to) {
  const numbers = axis.numbers;
  if (numbers.length === 0) {
    const band = (to - from) / axis.values.length;
    const place = (position) => from + (position + 0.5) * band;
    return {place, band};
  }
  const [low, high] = d3.extent(numbers);
  const scale = (low > 0 && high / low > wideRange ? d3.scaleLog() : d3.scaleLinear()).domain([low, high])
      .range([from + 8, to - 8]);
  return {place: (position) => scale(numbers[position]), band: null};
}

/** The other curves over an axis: points that differ in nothing but it, by what they have in common. */
function otherCurves(axisIndex, own) {
  const groups = new Map();
  for (const point of points) {
    const key = data.axes.map((axis, a) => a === axisIndex ? "" : axis.positions[point.index]).join(" ");
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(point);
  }
  return [...groups.values()].filter((group) => !group.includes(own[0])).map((group) => group.sort((a, b) =>
      data.axes[axisIndex].positions[a.index] - data.axes[axisIndex].positions[b.index]));
}

/** Runs of legal points that follow each other. */
function legalRuns(list) {
  const runs = [[]];
  for (const point of list) {
    if (isLegal(point)) runs[runs.length - 1].push(point);
    else if (runs[runs.length - 1].length > 0) runs.push([]);
  }
  return runs.filter((run) => run.length > 0);
}

/** The charts of one axis, read together. */
class Curves {
  constructor(axisIndex, box, said) {
    this.axis = data.axes[axisIndex];
    this.points = this.axis.curve.points.map((index) => points[index]);
    this.knee = this.axis.curve.knee === null ? null : points[this.axis.curve.knee];
    this.others = otherCurves(axisIndex, this.points);
    if (this.others.length > mostOthers) this.others = [];
    this.at = null;
    this.said = said;
    this.box = box;
    this.charts = metrics.slice(0, 4).map((metric) => {
      const chart = make("div", {class: "chart"});
      box.append(make("figure", {}, make("figcaption", {}, metric.name), chart));
      return {metric, chart};
    });
    this.listen();
    drawn(() => this.draw());
  }

  position(point) {
    return this.axis.positions[point.index];
  }

  listen() {
    this.box.addEventListener("keydown", (event) => {
      const last = this.points.length - 1;
      const from = this.at === null ? this.points.findIndex((point) => point.index === data.best) : this.at;
      const to = {ArrowLeft: Math.max(0, from - 1), ArrowRight: Math.min(last, from + 1), Home: 0, End: last}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      this.at = to;
      this.said.textContent = pointSentence(this.points[to]);
      this.draw();
    });
    for (const {chart} of this.charts) {
      chart.addEventListener("mousemove", (event) => {
        const [x] = d3.clientPoint(chart, event);
        const {place} = this.scale(chart);
        const distance = (point) => Math.abs(place(this.position(point)) - x);
        showPointTip(event, this.points.reduce((best, point) => distance(point) < distance(best) ? point : best));
      });
      chart.addEventListener("mouseleave", () => tooltip.hide());
    }
  }

  scale(chart) {
    return positionScale(this.axis, curveMargin.left, chart.clientWidth - curveMargin.right);
  }

  draw() {
    for (const {metric, chart} of this.charts) this.drawChart(metric, chart);
  }

  /** The highest value to be seen; grey curves may go beyond it. */
  highest(metric) {
    const legal = this.points.filter(isLegal);
    const values = legal.map((point) => point[metric.id]);
    if (metric.id !== "peak_memory_bytes") return Math.max(...values);
    return Math.max(...values, ...legal.map(usable));
  }

  drawChart(metric, chart) {
    const {place, band} = this.scale(chart);
    const width = chart.clientWidth;
    const y = d3.scaleLinear().domain([0, 1.06 * this.highest(metric) || 1]).range([curveHeight - curveMargin.bottom, curveMargin.top]);
    d3.select(chart).selectAll("svg").remove();
    const svg = d3.select(chart).append("svg").attr("height", curveHeight).attr("aria-hidden", "true");
    this.drawAxes(svg, metric, place, y, width);
    const at = (point) => [place(this.position(point)), y(point[metric.id])];
    const line = (run) => "M" + run.map((point) => at(point).map((value) => value.toFixed(1)).join(",")).join("L");
    const inside = svg.append("g");
    for (const other of this.others) this.drawOther(inside, other, at, line, y);
    if (band === null) {
      for (const run of legalRuns(this.points)) {
        svg.append("path").attr("d", line(run)).attr("fill", "none").attr("stroke", colour("forward")).attr("stroke-width", 2);
      }
    }
    this.drawKnee(svg, place);
    for (const point of this.points) this.drawPoint(svg, point, at, y, band, place);
    const across = d3.scaleLinear().range([curveMargin.left, width - curveMargin.right]);
    if (metric.id === "peak_memory_bytes") this.drawUsable(svg, across, place, y, band);
    if (this.at === null) return;
    const x = place(this.position(this.points[this.at]));
    svg.append("line").attr("x1", x).attr("x2", x).attr("y1", curveMargin.top).attr("y2", curveHeight - curveMargin.bottom)
        .attr("stroke", colour("text"));
  }

  /** A curve of other points: a thin line, or dots over values that are no numbers. */
  drawOther(svg, other, at, line, y) {
    const visible = (point) => at(point)[1] >= y.range()[1] - 4;
    if (this.axis.numbers.length > 0) {
      for (const run of legalRuns(other.map((point) => isLegal(point) && visible(point) ? point : {error: ""})))
        svg.append("path").attr("d", line(run)).attr("fill", "none").attr("stroke", colour("waiting")).attr("stroke-width", 1);
      return;
    }
    for (const point of other.filter((each) => isLegal(each) && visible(each))) {
      const [x, height] = at(point);
      svg.append("circle").attr("cx", x).attr("cy", height).attr("r", 2).attr("fill", colour("waiting"));
    }
  }

  drawPoint(svg, point, at, y, band, place) {
    if (!isLegal(point)) {
      svg.append("path").attr("transform", `translate(${place(this.position(point))},${y(0) - 8})`).attr("d", misfitMark)
          .attr("stroke", colour("muted")).attr("stroke-width", 1.5);
      return;
    }
    const [x, top] = at(point);
    const tone = colour(fits(point) ? "forward" : "cost");
    if (band !== null) {
      const width = Math.max(1, Math.min(44, 0.6 * band));
      svg.append("rect").attr("x", x - width / 2).attr("y", top).attr("width", width).attr("height", Math.max(1, y(0) - top))
          .attr("fill", fits(point) ? tone : colour("background")).attr("stroke", tone)
          .attr("stroke-dasharray", fits(point) ? null : "4 3");
      return;
    }
    if (this.points.length > 60 && fits(point)) return;
    svg.append("circle").attr("cx", x).attr("cy", top).attr("r", fits(point) ? 3.5 : 4)
        .attr("fill", fits(point) ? tone : colour("background")).attr("stroke", tone).attr("stroke-width", 1.5);
  }

  drawKnee(svg, place) {
    if (this.knee === null) return;
    const x = place(this.position(this.knee));
    svg.append("line").attr("x1", x).attr("x2", x).attr("y1", curveMargin.top).attr("y2", curveHeight - curveMargin.bottom)
        .attr("stroke", colour("gain")).attr("stroke-dasharray", "3 3").attr("stroke-width", 1.5);
    const left = x > (place(0) + place(this.axis.values.length - 1)) / 2;
    svg.append("text").attr("class", "label").attr("x", x + (left ? -6 : 6)).attr("y", curveHeight - curveMargin.bottom - 8)
        .attr("text-anchor", left ? "end" : "start").text("knee: " + positionText(this.axis, this.position(this.knee)));
  }

  /** The limit of memory: a line, or a step for each point, should GPUs differ. */
  drawUsable(svg, scaleX, place, y, band) {
    const legal = this.points.filter(isLegal);
    if (legal.length === 0) return;
    if (new Set(legal.map(usable)).size === 1) return drawLimit(svg, scaleX, y(usable(legal[0])), "usable: " + gib(usable(legal[0])));
    const half = band === null ? 8 : band / 2;
    let path = "";
    for (const point of legal) {
      const x = place(this.position(point));
      path += `${path === "" ? "M" : "L"}${x - half},${y(usable(point))}H${x + half}`;
    }
    svg.append("path").attr("d", path).attr("fill", "none").attr("stroke", colour("cost")).attr("stroke-dasharray", "6 4");
    const last = legal[legal.length - 1];
    svg.append("text").attr("class", "label").attr("x", place(this.position(last)) + half).attr("y", y(usable(last)) + 14)
        .attr("text-anchor", "end").text("usable: " + gib(usable(last)));
  }

  drawAxes(svg, metric, place, y, width) {
    const bottom = curveHeight - curveMargin.bottom;
    const unit = metric.id === "step_time_s" ? timeUnit(y.domain()[1]) : metric.write === gib ? [2 ** 30, "GiB"]
        : metric.write === percent ? [0.01, "%"] : [1, ""];
    const inUnit = d3.scaleLinear().domain(y.domain().map((value) => value / unit[0])).range(y.range());
    svg.append("g").attr("transform", `translate(${curveMargin.left},0)`)
        .call(d3.axisLeft(inUnit).ticks(5).tickSizeOuter(0).tickFormat((value) => d3.format("~r")(Number(value.toPrecision(6))) + " " + unit[1]));
    svg.append("line").attr("x1", curveMargin.left).attr("x2", width - curveMargin.right).attr("y1", bottom).attr("y2", bottom)
        .attr("stroke", colour("line"));
    let free = -Infinity;
    const room = this.axis.numbers.length > 0 ? Infinity : Math.max(3, Math.floor((width - curveMargin.left) / this.axis.values.length / 6.6));
    this.axis.values.forEach((_, position) => {
      const full = positionText(this.axis, position);
      const text = full.length > room ? full.slice(0, room - 1) + "…" : full;
      const x = place(position);
      const half = 3.4 * text.length + 3;
      if (x - half < free) return;
      free = x + half;
      svg.append("line").attr("x1", x).attr("x2", x).attr("y1", bottom).attr("y2", bottom + 5).attr("stroke", colour("line"));
      svg.append("text").attr("x", x).attr("y", bottom + 18).attr("text-anchor", "middle").text(text);
    });
    svg.append("text").attr("x", width - curveMargin.right).attr("y", curveHeight - 4).attr("text-anchor", "end").text(axisName(this.axis));
  }
}

const curveMargin = {top: 10, right: 12, bottom: 40, left: 62};
const curveHeight = 224;

function showCurve(axis, index) {
  const title = make("h3", {}, axisName(axis));
  const id = `curve-${index}`;
  const said = make("p", {class: "selected", "aria-live": "polite"});
  const box = make("div", {class: "curves", tabindex: "0", role: "application", id, "aria-describedby": "curves-help",
    "aria-label": `Step time, MFU, bubble ratio and peak memory over ${axisName(axis)}`});
  const list = axis.curve.points.map((point) => points[point]);
  const columns = pointColumns().filter((column) => column.name === undefined || axis.keys.map(shortKey).includes(column.name));
  const numbers = make("details", {}, make("summary", {}, "Numbers of these charts"),
      table(`Points over ${axisName(axis)}`, columns, list));
  byId("curves-list").append(title, ...axis.curve.sentences.map((sentence) => make("p", {}, sentence)), box, said, numbers);
  new Curves(index, box, said);
}

function showCurves() {
  const drawnAxes = data.axes.filter((axis) => axis.curve !== null);
  if (drawnAxes.length === 0) {
    byId("curves").remove();
    return;
  }
  const best = points[data.best];
  byId("curves-lead").textContent = data.axes.length === 1
      ? "What the value changes in the step."
      : `Blue: one key at a time, from the best point, ${pointName(best)}. Grey: the same with other values of the other ` +
        "keys; where it runs apart from the blue, keys depend on each other.";
  byId("curves-legend").append(
      make("li", {}, make("span", {class: "swatch", style: "background:var(--forward)"}), "fits"),
      make("li", {}, make("span", {class: "swatch hollow"}), "does not fit"),
      make("li", {}, make("span", {"aria-hidden": "true"}, "×"), "not legal"));
  data.axes.forEach((axis, index) => {
    if (axis.curve !== null) showCurve(axis, index);
  });
}

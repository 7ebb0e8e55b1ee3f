// Pareto fronts: a scatter of two numbers that are both to be small.

/** A tag's outline about 0,0. */
const frontMark = "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0Z";
const otherMark = "M-3.5,0a3.5,3.5 0 1,0 7,0a3.5,3.5 0 1,0 -7,0Z";
const misfitMark = "M-4,-4L4,4M4,-4L-4,4";

/**
 * A chart of points with `x`, `y` (in units of the axes), `front` (their place on the front, from 1, or 0), `fits`,
 * `name`, `text` (their numbers in words), and perhaps `mark`, a name that stands beside them, and `hollow`. Axes have a `title` and a `unit`.
 * `limit` is a y that no point that fits exceeds, if there is one; `misfits` says what is wrong with those that do not.
 */
class FrontChart {
  constructor(id, points, {x, y, label, limit, misfits = "do not fit into memory"}) {
    this.axes = {x, y};
    this.limit = limit;
    this.margin = {top: 14, right: 16, bottom: 42, left: 80};
    this.height = 330;
    const highest = Math.max(...points.filter((point) => point.fits).map((point) => point.y), limit || 0);
    const widest = Math.max(...points.filter((point) => point.fits).map((point) => point.x));
    this.points = points.filter((point) => point.fits || (point.y <= 1.5 * highest && point.x <= 1.2 * widest));
    this.front = this.points.filter((point) => point.front).sort((a, b) => a.front - b.front);
    this.at = null;
    this.said = make("p", {class: "selected", "aria-live": "polite"});
    const left = points.length - this.points.length;
    const help = make("p", {class: "help", id: id + "-help"}, "Points on the line are numbered as in the table; crosses " +
        misfits + ". Move over a point to read it; on the keyboard, left and right go along the line." +
        (left > 0 ? ` ${left} points that ${misfits} lie too far out to be shown.` : ""));
    this.box = make("div", {class: "chart", tabindex: "0", role: "application", "aria-label": label,
      "aria-describedby": id + "-help"});
    byId(id).append(this.box, this.said, help);
    this.listen();
    drawn(() => this.draw());
  }

  listen() {
    this.box.addEventListener("mousemove", (event) => this.hover(event));
    this.box.addEventListener("mouseleave", () => tooltip.hide());
    this.box.addEventListener("keydown", (event) => {
      const last = this.front.length - 1;
      const from = this.at === null ? -1 : this.at;
      const to = {ArrowLeft: Math.max(0, from - 1), ArrowRight: Math.min(last, from + 1), Home: 0, End: last}[event.key];
      if (to === undefined || last < 0) return;
      event.preventDefault();
      this.at = to;
      this.said.textContent = `${this.front[to].front}: ${this.front[to].name}: ${this.front[to].text}.`;
      this.draw();
    });
  }

  hover(event) {
    const [px, py] = d3.clientPoint(this.box, event);
    const {x, y} = this.scales();
    const distance = (point) => Math.hypot(x(point.x) - px, y(point.y) - py);
    const nearest = this.points.reduce((best, point) => best === null || distance(point) < distance(best) ? point : best, null);
    if (nearest === null || distance(nearest) > 24) return tooltip.hide();
    tooltip.show(event.pageX, event.pageY, make("strong", {}, nearest.name), nearest.text);
  }

  scales() {
    const over = (values) => {
      const [low, high] = d3.extent(values);
      const room = 0.08 * (high - low) || 0.1 * high || 1;
      return [Math.max(0, low - room), high + room];
    };
    const ys = this.points.map((point) => point.y);
    const near = this.limit && this.limit < 1.5 * Math.max(...ys) ? ys.concat(this.limit) : ys;
    return {
      x: d3.scaleLinear().domain(over(this.points.map((point) => point.x)))
          .range([this.margin.left, this.box.clientWidth - this.margin.right]),
      y: d3.scaleLinear().domain(over(near)).range([this.height - this.margin.bottom, this.margin.top]),
    };
  }

  draw() {
    const {x, y} = this.scales();
    const width = this.box.clientWidth;
    d3.select(this.box).selectAll("svg").remove();
    const svg = d3.select(this.box).append("svg").attr("height", this.height).attr("aria-hidden", "true");
    drawAxes(svg, x, y, {x: this.axes.x, y: this.axes.y, width, height: this.height, margin: this.margin});
    if (this.limit && this.limit <= y.domain()[1]) drawLimit(svg, x, y(this.limit), `usable: ${number(this.limit, 3)} ${this.axes.y.unit}`);
    if (this.front.length > 1) {
      const path = this.front.map((point, i) => i === 0 ? `M${x(point.x)},${y(point.y)}` : `H${x(point.x)}V${y(point.y)}`).join("");
      svg.append("path").attr("d", path).attr("fill", "none").attr("stroke", colour("forward")).attr("stroke-width", 1.5)
          .attr("stroke-opacity", 0.6);
    }
    for (const point of [...this.points].sort((a, b) => (a.front ? 1 : 0) - (b.front ? 1 : 0))) this.drawPoint(svg, point, x, y);
    this.drawTags(svg, x, y, width);
  }

  drawPoint(svg, point, x, y) {
    const mark = svg.append("path").attr("transform", `translate(${x(point.x)},${y(point.y)})`)
        .attr("d", point.front ? frontMark : point.fits ? otherMark : misfitMark);
    if (point.hollow) mark.attr("fill", colour("background")).attr("stroke", colour("waiting"));
    else if (point.fits) mark.attr("fill", colour(point.front ? "forward" : "waiting")).attr("stroke", colour("background"));
    else mark.attr("fill", "none").attr("stroke", colour("cost")).attr("stroke-width", 1.5);
    if (this.at !== null && this.front[this.at] === point)
      mark.attr("stroke", colour("text")).attr("stroke-width", 3);
  }

  /** Numbers of the points on the front, and names of marked ones, where there is room. */
  drawTags(svg, x, y, width) {
    const placed = [];
    const tagged = this.front.map((point) => [point, String(point.front)])
        .concat(this.points.filter((point) => point.mark).map((point) => [point, point.mark]));
    for (const [point, text] of tagged.sort((a, b) => b[1].length - a[1].length)) {
      const [px, py] = [x(point.x), y(point.y)];
      if (placed.some(([ox, oy]) => Math.abs(ox - px) < 16 && Math.abs(oy - py) < 14)) continue;
      placed.push([px, py]);
      const left = px > width - 20 - 7 * text.length;
      svg.append("text").attr("class", "label").attr("x", px + (left ? -9 : 9)).attr("y", py - 7)
          .attr("text-anchor", left ? "end" : "start").text(text);
    }
  }
}

// What all charts share.

/** The colour of a variable of the style, as it is now. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

const redraws = [];

/** Draws now, and again whenever the width or the colours change. */
function drawn(draw) {
  redraws.push(draw);
  draw();
}

function redrawAll() {
  for (const draw of redraws) draw();
}

/** Redraws when the window or the colour scheme changes. On paper everything is light, and what is folded opens. */
function showOnPaper() {
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    // A window that is being closed has none.
    if (width > 0) redrawAll();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  let opened = [];
  window.matchMedia("print").addEventListener("change", (event) => {
    if (event.matches) {
      opened = [...document.querySelectorAll("details:not([open])")].filter((each) => each.id !== "timeline-details");
      for (const each of opened) each.open = true;
    } else {
      for (const each of opened) each.open = false;
    }
    redrawAll();
  });
}

/** The unit for times within so many seconds of each other, and its name. */
function timeUnit(seconds) {
  return seconds >= 2 ? [1, "s"] : seconds >= 2e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
}

/** A time axis in a unit that suits what is shown. */
function timeAxis(scale, ticks) {
  const [from, to] = scale.domain();
  const [unit, name] = timeUnit(to - from);
  const inUnit = d3.scaleLinear().domain([from / unit, to / unit]).range(scale.range());
  const format = inUnit.tickFormat(ticks);
  return d3.axisBottom(inUnit).ticks(ticks).tickSizeOuter(0).tickFormat((value) => format(value) + " " + name);
}

/** Axes with titles: `x` and `y` have a `title` and perhaps a `unit` behind every tick. */
function drawAxes(svg, scaleX, scaleY, {x, y, width, height, margin}) {
  const withUnit = (axis) => (value) => d3.format("~r")(Number(value.toPrecision(6))) + (axis.unit ? " " + axis.unit : "");
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`)
      .call(d3.axisBottom(scaleX).ticks(Math.max(2, width / 120)).tickSizeOuter(0).tickFormat(withUnit(x)));
  svg.append("g").attr("transform", `translate(${margin.left},0)`)
      .call(d3.axisLeft(scaleY).ticks(5).tickSizeOuter(0).tickFormat(withUnit(y)));
  svg.append("text").attr("x", width - margin.right).attr("y", height - 6).attr("text-anchor", "end").text(x.title);
  svg.append("text").attr("transform", `translate(12,${margin.top}) rotate(-90)`).attr("text-anchor", "end").text(y.title);
}

/** A line that is not to be crossed, with a text below its right end. */
function drawLimit(svg, scaleX, y, text) {
  const [from, to] = scaleX.range();
  svg.append("line").attr("x1", from).attr("x2", to).attr("y1", y).attr("y2", y)
      .attr("stroke", colour("cost")).attr("stroke-dasharray", "6 4");
  svg.append("text").attr("class", "label").attr("x", to).attr("y", y + 15).attr("text-anchor", "end").text(text);
}

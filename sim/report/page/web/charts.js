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
    redrawAll();
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

// The points of a sweep, and what is read of them.

const points = data.points.rows.map((values, index) => Object.assign({index},
    Object.fromEntries(data.points.columns.map((column, i) => [column, values[i]]))));

/** Points that the page has no room for. */
const pointsLeftOut = data.counts.points - points.length;

function isLegal(point) {
  return point.error === null;
}

function fits(point) {
  return isLegal(point) && point.fits;
}

/** The part of a key behind its last dot that tells it from the other keys. */
function shortKey(key) {
  const parts = key.split(".");
  for (let n = 1; n < parts.length; ++n) {
    const short = parts.slice(-n).join(".");
    if (data.keys.filter((other) => other === short || other.endsWith("." + short)).length === 1) return short;
  }
  return key;
}

function valueText(value) {
  return value === null || value === "" ? "as configured" : String(value);
}

/** "micro_batch_size 2, recompute full". */
function pointName(point) {
  return data.keys.map((key) => `${shortKey(key)} ${valueText(point[key])}`).join(", ");
}

/** The value of an axis at a position: "2", or those of all of its keys. */
function positionText(axis, position) {
  return axis.values[position].map(valueText).join(" · ");
}

function axisName(axis) {
  return axis.keys.map(shortKey).join(" · ");
}

const perToken = data.per === "token";
const gpusVary = data.cost_front !== null;

/** Whether all legal points have a number of the whole run, which a section `run` of the configuration gives them. */
function hasRuns(id) {
  return points.some(isLegal) && points.filter(isLegal).every((point) => typeof point[id] === "number");
}

const currencies = new Set(points.map((point) => point.run_currency).filter((name) => name));
const currency = currencies.size === 1 ? "\u00a0" + [...currencies][0] : "";

const metrics = [
  {id: "step_time_s", name: "Step time", write: duration, less: true},
  {id: "mfu", name: "MFU", write: percent, less: false},
  {id: "bubble_ratio", name: "Bubble ratio", write: percent, less: true},
  {id: "peak_memory_bytes", name: "Peak memory", write: gib, less: true},
  {id: "tokens_per_s_per_gpu", name: "Tokens/s per GPU", write: number, less: false},
  {id: "time_s", name: "Time per million tokens", write: duration, less: true, when: perToken},
  {id: "gpu_hours", name: perToken ? "GPU-hours per 10⁹ tokens" : "GPU-hours per step", write: number, less: true,
    when: gpusVary},
  {id: "run_days", name: "Days of the whole run", write: number, less: true, when: hasRuns("run_days")},
  {id: "run_cost", name: "Cost of the whole run", write: (cost) => (cost < 1000 ? number(cost, 3) : whole(cost)) + currency, less: true,
    when: hasRuns("run_cost")},
].filter((metric) => metric.when !== false);

function metricOf(id) {
  return metrics.find((metric) => metric.id === id);
}

/** Memory that tensors may take. */
function usable(point) {
  return point.peak_memory_bytes + point.memory_headroom_bytes;
}

/** Why a point has no results, or how it stands with memory. */
function stateText(point) {
  if (!isLegal(point)) return `not legal: ${point.error}`;
  const headroom = point.memory_headroom_bytes;
  if (point.fits) return `${point.verdict}, ${gib(headroom)} left`;
  return headroom < 0 ? `${point.verdict}: needs ${gib(-headroom)} more than a GPU has`
      : `${point.verdict}: offloads more than the host holds`;
}

/** Numbers of a point as [name, text]. */
function pointRows(point) {
  if (!isLegal(point)) return [];
  return metrics.map((metric) => [metric.name, metric.write(point[metric.id])]);
}

/** The same in a sentence, for the keyboard. */
function pointSentence(point) {
  const numbers = pointRows(point).map(([name, text]) => `${name} ${text}`);
  return `${pointName(point)}: ${numbers.concat(stateText(point)).join("; ")}.`;
}

function showPointTip(event, point) {
  const rows = pointRows(point).map(([name, text]) =>
      make("tr", {}, make("td", {}, name), make("td", {class: "number"}, text)));
  tooltip.show(event.pageX, event.pageY, make("strong", {}, pointName(point)), stateText(point),
      rows.length === 0 ? "" : make("table", {}, make("tbody", {}, rows)));
}

/** Columns of a table of points; why a point is not legal goes over all of its numbers. */
function pointColumns() {
  const numbers = metrics.map((metric) => ({title: metric.name, number: true, value: (point) => point[metric.id],
    cell: (point) => metric.write(point[metric.id])}));
  numbers[0].spans = (point) => isLegal(point) ? 1 : metrics.length + 1;
  const first = numbers[0].cell;
  numbers[0].cell = (point) => isLegal(point) ? first(point) : stateText(point);
  return [
    {title: "Point", number: true, value: (point) => point.point, cell: (point) => whole(point.point)},
    ...data.keys.map((key) => ({title: breakable(shortKey(key)), name: shortKey(key), value: (point) => point[key],
      number: points.every((point) => typeof point[key] === "number"), cell: (point) => valueText(point[key])})),
    ...numbers,
    {title: "Memory", value: (point) => isLegal(point) ? point.memory_headroom_bytes : null, cell: (point) => point.verdict},
  ];
}

// The page of a sweep.

function sweepSettings() {
  const rows = data.axes.map((axis) => [axisName(axis), axis.values.length > 16
    ? `${whole(axis.values.length)} values from ${positionText(axis, 0)} to ${positionText(axis, axis.values.length - 1)}`
    : axis.values.map((_, position) => positionText(axis, position)).join(axis.keys.length > 1 ? ";  " : ", ")]);
  const shard = data.counts.points < data.points_of_sweep ? ` of the ${whole(data.points_of_sweep)} of the sweep` : "";
  return [["Points", whole(data.counts.points) + shard], ...rows];
}

function sweepNumbers() {
  const {points: all, legal, fit} = data.counts;
  const numbers = [["Points that fit", whole(fit), `${whole(legal - fit)} do not fit, ${whole(all - legal)} are not legal`]];
  if (data.best === null) return numbers;
  const best = points[data.best];
  return [
    ["Step time of the best", duration(best.step_time_s), pointName(best)],
    ["Tokens/s per GPU", number(best.tokens_per_s_per_gpu), number(best.tokens_per_s) + " tokens/s in all"],
    ["MFU", percent(best.mfu), `scaling efficiency ${percent(best.scaling_efficiency)}`],
    ["Bubble ratio", percent(best.bubble_ratio), `${whole(best.gpus)} GPUs`],
    ["Peak memory", gib(best.peak_memory_bytes), stateText(best)],
    ...numbers,
  ];
}

const timeName = perToken ? "Time per million tokens" : "Step time";

/** A front of time against another number, and the table of its points. */
function showFront(id, front, other, label, limit) {
  byId(id + "-lead").textContent = front.sentence;
  const legal = points.filter(isLegal);
  if (front.points.length === 0) return;
  const [unit, unitName] = timeUnit(Math.max(...front.points.map((index) => points[index].time_s)));
  const list = legal.map((point) => ({
    x: point.time_s / unit, y: point[other.id] / other.unit[0], front: front.points.indexOf(point.index) + 1, fits: fits(point),
    name: pointName(point), text: `${timeName.toLowerCase()} ${duration(point.time_s)}, ${other.name.toLowerCase()} ` +
        `${other.write(point[other.id])}, ${stateText(point)}`,
  }));
  new FrontChart(id, list, {x: {title: timeName, unit: unitName}, y: {title: other.name, unit: other.unit[1]}, label, limit});
  const place = {title: "", number: true, cell: (point) => String(front.points.indexOf(point.index) + 1)};
  byId(id).append(table("On the line", [place, ...pointColumns()], front.points.map((index) => points[index])));
}

function showFronts() {
  if (data.counts.legal === 0) {
    byId("front").remove();
    return;
  }
  const limits = new Set(points.filter(isLegal).map(usable));
  showFront("memory-front", data.memory_front, Object.assign({unit: [2 ** 30, "GiB"]}, metricOf("peak_memory_bytes")),
      `${timeName} against peak memory of all points`, limits.size === 1 ? [...limits][0] / 2 ** 30 : undefined);
  if (data.cost_front === null) {
    byId("cost-part").remove();
    return;
  }
  showFront("cost-front", data.cost_front, Object.assign({unit: [1, ""]}, metricOf("gpu_hours")),
      `${timeName} against GPU-hours of all points`);
}

function showPoints() {
  byId("points-lead").textContent = "Click on a head to sort by it." + (pointsLeftOut > 0 ?
    ` ${whole(pointsLeftOut)} points are left out, so that the file stays small. Kept are the best and, while there is room, the ` +
      "points on the lines, those of the curves, and of the others every so many; the map and the charts of all points show only " +
      "these." : "");
  byId("points-table").append(sortableTable("One row per point", pointColumns(), points,
      (point) => point.index === data.best ? "totals" : "", [0, true]));
}

describe("setting", sweepSettings());
byId("headline").textContent = data.headline;
showNumbers("numbers", sweepNumbers());
showList("notes", data.notes);
if (data.counts.fit === 0 && data.counts.legal > 0) showWarnings([["Nothing fits.", "All charts show points that do not fit."]]);
showCurves();
showMap();
showFronts();
showPoints();
data.made = `Simulated by trainsim ${data.version}.`;

// Waterfalls: bars of totals, and between two of them what the one is more than the other.

/**
 * Bars with where they begin and end, without those smaller than `tiny`. A bar has a `name`, a `value`, and `is_total`
 * when it stands on the ground.
 */
function placedBars(bars, tiny) {
  let at = 0;
  return bars.map((bar) => {
    const begin = bar.is_total ? 0 : Math.min(at, at + bar.value);
    at = bar.is_total ? bar.value : at + bar.value;
    return Object.assign({}, bar, {begin, end: begin + Math.abs(bar.value)});
  }).filter((bar) => bar.is_total || Math.abs(bar.value) > tiny);
}

/** "+1.2 s" of a cost, "−1.2 s" of a gain, "1.2 s" of a total. */
function signed(bar, write) {
  return (bar.is_total || bar.value < 0 ? "" : "+") + write(bar.value).replace("-", "−");
}

/** A table with the bars of a waterfall, and columns of its numbers. A bar may have a `text` that explains it. */
function waterfallTable(caption, bars, columns) {
  const widest = Math.max(...bars.map((bar) => bar.end));
  const colourOf = (bar) => bar.is_total ? "total" : bar.value < 0 ? "gain" : "cost";
  return table(caption, [
    {title: "", cell: (bar) => [bar.name, bar.text ? make("div", {class: "small"}, bar.text) : null]},
    {title: "", class: "bar-cell", cell: (bar) =>
        track([[colourOf(bar), Math.abs(bar.value) / widest]], bar.begin / widest)},
    ...columns,
  ], bars, (bar) => bar.is_total ? "totals" : "");
}

/** Bars from the time of a run to that of another, by cause; of a million tokens where steps have different numbers of them. */
function timeMoves(difference) {
  const unit = difference.per === "token" ? 1e6 : 1;
  return [{name: difference.from, value: unit * difference.from_s, is_total: true},
    ...Object.entries(difference.breakdown).map(([cause, part]) => ({name: words(cause), value: unit * part.change_s})),
    {name: difference.to, value: unit * (difference.from_s + difference.change_s), is_total: true}];
}

/** The same for memory by category, from a peak of `before` bytes. */
function memoryMoves(difference, before) {
  return [{name: difference.from, value: before, is_total: true},
    ...Object.entries(difference.memory_at_peak).map(([category, bytes]) => ({name: words(category), value: bytes})),
    {name: difference.to, value: before + difference.change_bytes, is_total: true}];
}

/** A waterfall from one total over changes to another. */
function moveTable(caption, bars, write) {
  const total = bars[0].value;
  return waterfallTable(caption + ": totals in bold; what is more in between is a cost, what is less a gain",
      placedBars(bars, 5e-5 * total), [
        {title: "", number: true, cell: (bar) => signed(bar, write)},
        {title: `Of ${bars[0].name}`, number: true, cell: (bar) => bar.is_total ? percent(bar.value / total) : change(bar.value / total)},
      ]);
}

/** Causes of the breakdown that are shown as one part of a step: colour, name, and the causes. */
const stageParts = [
  ["forward", "Forward", ["forward"]],
  ["backward", "Backward", ["backward"]],
  ["recompute", "Recomputation", ["recompute"]],
  ["optimizer", "Optimizer", ["optimizer"]],
  ["communication", "Communication waited for",
    ["tensor_communication", "pipeline_communication", "data_communication", "embedding_communication",
      "context_communication", "expert_communication"]],
  ["launch", "Launches", ["launch"]],
  ["waiting", "Bubble and imbalance", ["bubble", "imbalance"]],
];

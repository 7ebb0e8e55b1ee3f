// The page of a comparison.

const runs = data.runs;
const perToken = data.differences.some((difference) => difference.per === "token");

function planText(plan) {
  const tensor = "TP" + plan.tensor_parallel + (plan.sequence_parallel ? "+SP" : "");
  const chunks = plan.virtual_pipeline > 1 ? ` VPP${plan.virtual_pipeline}` : "";
  const context = plan.context_parallel > 1 ? ` CP${plan.context_parallel}` : "";
  return `${tensor} PP${plan.pipeline_parallel}${chunks}${context} DP${plan.data_parallel}, ${plan.schedule}, ` +
      `${whole(plan.micro_batches)} × ${plan.micro_batch_size} sequences, recompute ${plan.recompute.granularity}`;
}

/** What a run is: its label, its description, and its plan. */
function runText(run) {
  return `${run.label}: ${run.result.model} on ${whole(run.result.plan.gpus)} × ${run.result.gpu}, ${planText(run.result.plan)}`;
}

/** Rows of the headline numbers: name, value of a run, its text, and whether a change is a share. */
const figures = [
  ["Step time", (run) => run.result.step_time_s, duration, true],
  ["Time per million tokens", (run) => perToken ? 1e6 * run.result.step_time_s / run.tokens : null, duration, true],
  ["Tokens/s", (run) => run.result.tokens_per_s, (value) => whole(value), true],
  ["Tokens/s per GPU", (run) => run.result.tokens_per_s_per_gpu, number, true],
  ["MFU", (run) => run.result.mfu, percent, false],
  ["HFU", (run) => run.result.hfu, percent, false],
  ["Bubble ratio", (run) => run.result.bubble_ratio, percent, false],
  ["Scaling efficiency", (run) => run.result.scaling_efficiency, percent, false],
  ["Peak memory", (run) => run.result.peak_memory_bytes, gib, true],
  ["GPUs", (run) => run.result.plan.gpus, whole, true],
].filter(([, value]) => value(runs[0]) !== null);

/** "+3.1 %", or "+1.2 points" of what is a share itself. */
function changeText(from, to, isShare) {
  if (from === to) return "same";
  if (isShare) return change(to / from - 1);
  const moved = 100 * (to - from);
  return (moved > 0 ? "+" : "") + moved.toFixed(1).replace("-", "−") + "\u00a0points";
}

function showFigures() {
  const columns = [{title: "", cell: ([name]) => name}].concat(runs.map((run, index) => ({
    title: run.run, number: true, cell: ([, value, write, isShare]) => [write(value(run)), index === 0 ? null :
        make("div", {class: "small"}, changeText(value(runs[0]), value(run), isShare))],
  })));
  const rows = figures.concat([["Fits into memory", (run) => run.result.verdict, null, null]]);
  columns.slice(1).forEach((column, index) => {
    const numbers = column.cell;
    column.cell = (row) => row[2] === null ? row[1](runs[index]) : numbers(row);
  });
  byId("figures").append(table("Results side by side, and below each what it is more or less than the first", columns, rows));
}

/** What is short enough for the head of a column. */
const shortTitles = {"Recomputation": "Recom\u00adputation", "Communication waited for": "Communi\u00adcation",
  "Optimizer": "Opti\u00admizer", "Bubble and imbalance": "Bubble, im\u00adbalance"};

/** A share in percent; what would be noughts only is nothing. */
function share(value) {
  return percent(Math.abs(value) < 5e-4 ? 0 : value);
}

function showBreakdown() {
  const time = (run) => perToken ? 1e6 * run.result.step_time_s / run.tokens : run.result.step_time_s;
  const longest = Math.max(...runs.map(time));
  byId("breakdown-lead").textContent = `The ${perToken ? "time of a million tokens" : "step"} of each run by cause, on one ` +
      "scale. Mean over ranks.";
  legend("breakdown-legend", stageParts.map(([name, text]) => [name, text]));
  const part = (run, causes) => d3.sum(causes, (cause) => run.result.breakdown[cause]) / run.result.step_time_s;
  byId("breakdown-table").append(table("", [
    {title: "Run", cell: (run) => run.run},
    {title: "", class: "bar-cell", cell: (run) =>
        track(stageParts.map(([name, , causes]) => [name, part(run, causes) * time(run) / longest]))},
    {title: perToken ? "Per million tokens" : "Step", number: true, cell: (run) => duration(time(run))},
    ...stageParts.map(([, text, causes]) => ({title: shortTitles[text] || text, number: true, cell: (run) => share(part(run, causes))})),
  ], runs));
}

function showMoves() {
  const isMemory = (text) => text.startsWith("The fullest rank");
  for (const difference of data.differences) {
    const title = `From ${difference.from} to ${difference.to}`;
    const texts = (wanted) => difference.sentences.filter(wanted).map((text) => make("p", {}, text));
    byId("time-list").append(make("h3", {}, title + (difference.per === "step" ? "" : ", per million tokens")),
        ...texts((text) => !isMemory(text)), moveTable("Time", timeMoves(difference), duration));
    byId("memory-list").append(make("h3", {}, title), ...texts(isMemory),
        moveTable("Peak memory", memoryMoves(difference, runs[0].result.peak_memory_bytes), gib));
  }
}

function showInputs() {
  if (data.inputs.length === 0) {
    byId("inputs-table").append(make("p", {}, "Nothing in the input differs."));
    return;
  }
  byId("inputs-table").append(table("Values that are not the same in all runs; others are", [
    {title: "Key", cell: (row) => breakable(row.key)},
    ...runs.map((run, index) => ({title: run.run, class: "state", cell: (row) => row.values[index] === null ? "–" : row.values[index]})),
  ], data.inputs));
}

function showStages() {
  const last = Math.max(...runs.flatMap((run) => run.stages.map((stage) => stage.stage)));
  const first = (run, key) => run.stages.reduce((a, b) => b[key] > a[key] ? b : a).stage;
  byId("stages-lead").textContent = runs.map((run) => `In ${run.run} stage ${first(run, "busy_s")} works longest and stage ` +
      `${first(run, "peak_memory_bytes")} is the fullest.`).join(" ") + " Of several ranks of a stage, the largest number is shown.";
  const quantities = [["layers", "layers", String], ["busy", "busy_s", duration], ["bubble", "bubble_ratio", percent],
    ["peak memory", "peak_memory_bytes", gib]];
  const columns = quantities.flatMap(([name, key, write]) => runs.map((run) => ({
    title: `${run.run} ${name}`, number: true, cell: (number_) => {
      const stage = run.stages.find((each) => each.stage === number_);
      return stage === undefined ? "" : write(stage[key]);
    }})));
  byId("stages-table").append(table("By pipeline stage", [{title: "Stage", cell: (stage) => String(stage)}, ...columns], d3.range(last + 1)));
}

function compareWarnings() {
  const misfits = runs.filter((run) => !run.result.fits);
  return misfits.map((run) => [`${run.run} does not fit.`,
    run.result.memory_headroom_bytes < 0 ? `Its fullest rank needs ${gib(-run.result.memory_headroom_bytes)} more than a GPU has.`
        : "It offloads more than its hosts hold."])
      .concat(runs.flatMap((run) => run.result.warnings.map((warning) => [`Warning of ${run.run}.`, warning])));
}

describe("setting", runs.map((run) => [run.run, runText(run)]));
byId("headline").textContent = data.headline;
showWarnings(compareWarnings());
showFigures();
showBreakdown();
showMoves();
showInputs();
showStages();
data.made = `Simulated by trainsim ${data.version}.`;

// From a step to the whole run: how long, what for, and where its time goes.

const run = result.run;

/** Steps below the full batch of a ramp: how many, their sequences, and how long they take. */
function rampOf(stages) {
  const below = stages.slice(0, -1);
  return {
    steps: d3.sum(below, (stage) => stage.steps),
    samples: d3.sum(below, (stage) => stage.steps * stage.global_batch_size),
    seconds: d3.sum(below, (stage) => stage.steps * stage.step_time_s),
  };
}

const ramp = run ? rampOf(run.stages) : null;
const fullBatch = run ? run.stages[run.stages.length - 1] : null;
/** How long the sequences of the ramp would take with the full batch. */
const rampAtFull = run ? ramp.samples / fullBatch.global_batch_size * fullBatch.step_time_s : 0;

/** GPU-hours and money, of runs of any size. */
function amount(value) {
  return value < 1e4 ? number(value) : value < 1e6 ? whole(value) : count(value);
}

function energyText(kilowattHours) {
  return kilowattHours < 1e4 ? number(kilowattHours) + "\u00a0kWh" : number(kilowattHours / 1e3) + "\u00a0MWh";
}

function weightText(kilograms) {
  return kilograms < 1e4 ? number(kilograms) + "\u00a0kg" : number(kilograms / 1e3) + "\u00a0t";
}

function timeNote() {
  if (run.failures) {
    return `${longDuration(run.failures.wall_p10_s)} to ${longDuration(run.failures.wall_p90_s)} in 80\u00a0% of ` +
        `${whole(run.failures.runs)} simulated runs`;
  }
  return run.checkpoint ? "with checkpoints, without failures" : "without checkpoints and failures";
}

/** Headline numbers; what has no price, power or grid is left out. */
function runNumbers() {
  const {cost, energy, failures} = run;
  return [
    ["Time", longDuration(run.wall_s), timeNote()],
    ["Goodput", percent(run.goodput), failures ? `${percent(failures.goodput_p10)} to ${percent(failures.goodput_p90)} in ` +
        "80\u00a0% of the runs" : "the share of the time that steps take"],
    ["GPU-hours", amount(run.gpu_hours), `on ${whole(result.plan.gpus)} GPUs`],
    cost ? ["Cost", `${amount(cost.amount)}\u00a0${cost.currency}`, `at ${number(cost.price_per_gpu_hour, 3)} ${cost.currency} per GPU-hour`] : null,
    energy ? ["Energy", energyText(energy.energy_kwh), `estimated; PUE ${number(energy.pue, 3)}`] : null,
    energy && energy.co2_kg !== null ? ["CO₂", weightText(energy.co2_kg), `at ${number(energy.grid_intensity_g_per_kwh, 3)} g/kWh`] : null,
  ].filter((each) => each !== null);
}

/** From all steps at the full batch to the whole run. */
function runBars() {
  const {steps_s: steps, checkpoints_s: checkpoints, lost_s: lost, restarts_s: restarts} = run.breakdown;
  const {failures} = run;
  const hasRamp = ramp.steps > 0;
  return [
    hasRamp ? {name: "Steps, if all had the full batch", value: steps - ramp.seconds + rampAtFull, is_total: true} : null,
    hasRamp ? {name: "Batch ramp", value: ramp.seconds - rampAtFull, text: "Smaller batches take longer for the same sequences."} : null,
    {name: "Steps", value: steps, is_total: true, text: "What is kept of them: training itself."},
    {name: "Checkpoints", value: checkpoints, text: "Training stops, or is slower, while they are saved."},
    failures ? {name: "Steps done again", value: lost, text: "From the checkpoint that training goes back to until the failure."} : null,
    failures ? {name: "Restarts", value: restarts, text: "From a failure until training goes on."} : null,
    {name: "Whole run", value: run.wall_s, is_total: true},
  ].filter((bar) => bar !== null);
}

function checkpointText() {
  const {checkpoint} = run;
  if (!checkpoint) return "none: the configuration has no run.checkpoint";
  const written = checkpoint.write_s > checkpoint.stall_s ? ` and written after ${longDuration(checkpoint.write_s)}` : "";
  const beside = checkpoint.slow_step_time_s === null ? "" :
      `; steps beside it take ${duration(checkpoint.slow_step_time_s)} and lose ${duration(checkpoint.slowed_s)} in all`;
  return `every ${whole(checkpoint.interval_steps)} steps (${longDuration(checkpoint.interval_s)}), ` +
      `${gib(checkpoint.size_bytes)}, stopping training for ${longDuration(checkpoint.stall_s)}${written}${beside}`;
}

function failureText() {
  const {failures} = run;
  if (!failures) return "none: the configuration has no run.failures";
  return `${number(failures.expected, 3)} in the run, one every ${longDuration(failures.mtbf_s)}, each with a restart of ` +
      `${longDuration(failures.restart_s)}; mean over ${whole(failures.runs)} simulated runs (seed ${failures.seed})`;
}

function energyBasis() {
  const {energy} = run;
  if (!energy) return "not known: the GPU has no rated_power";
  const carbon = energy.co2_kg === null ? "; CO₂ is not known without run.power.grid_intensity" : "";
  return `a GPU draws ${number(energy.gpu_power_w, 3)} W in a step (computing ${percent(energy.gpu_utilization)} of it; ` +
      `estimated), a node ${number(energy.node_overhead_w / 1e3, 2)} kW beside its GPUs, PUE ${number(energy.pue, 3)}${carbon}`;
}

function runBasis() {
  const rows = [["Length", `${count(run.tokens)} tokens, ${whole(run.samples)} sequences, in ${whole(run.steps)} steps`]];
  if (ramp.steps > 0) {
    rows.push(["Batch ramp", `from ${whole(run.stages[0].global_batch_size)} to ${whole(fullBatch.global_batch_size)} sequences ` +
        `in ${run.stages.length} sizes, each simulated: ${longDuration(ramp.seconds)}, against ${longDuration(rampAtFull)} with ` +
        "the full batch"]);
  }
  return rows.concat([["Checkpoints", checkpointText()], ["Failures", failureText()], ["Energy", energyBasis()],
    ["Not counted", "spare nodes that run out, planned maintenance, evaluation between steps; switches and storage outside of " +
        "nodes, and the making of the hardware"]]);
}

/** The interval between checkpoints beside the best ones by Daly and Young. */
function showIntervals() {
  const {checkpoint, failures} = run;
  if (!checkpoint || !failures) {
    byId("run-intervals").remove();
    return;
  }
  const how = checkpoint.chosen ? "Used, chosen by auto" : "Used, as configured";
  if (failures.daly_interval_s === null) {
    byId("run-intervals").append(make("p", {}, `${how}: ${longDuration(checkpoint.interval_s)}. Checkpoints are written beside ` +
        "training, for which Daly’s and Young’s best intervals do not hold" +
        (checkpoint.chosen ? "; auto takes Daly’s, or as long as writing takes." : ".")));
    return;
  }
  const steps = (seconds) => Math.round(seconds / checkpoint.interval_s * checkpoint.interval_steps);
  byId("run-intervals").append(table("Time of steps between two checkpoints", [
    {title: "Interval", cell: ([name]) => name},
    {title: "Time", number: true, cell: ([, seconds]) => longDuration(seconds)},
    {title: "Steps", number: true, cell: ([, seconds]) => whole(steps(seconds))},
    {title: "Goodput, closed form", number: true, cell: ([, , goodput]) => goodput === null ? "" : number(100 * goodput) + "\u00a0%"},
  ], [
    [how, checkpoint.interval_s, failures.goodput_closed_form],
    ["Best by Daly 2006", failures.daly_interval_s, failures.goodput_at_daly],
    ["Best by Young 1974", failures.young_interval_s, null],
  ]));
}

function showBatchSizes() {
  if (ramp.steps === 0) {
    byId("run-batches-details").remove();
    return;
  }
  const columns = make("div", {class: "columns"});
  columns.append(table("Sizes of the batch, in order", [
    {title: "Sequences", number: true, cell: (stage) => whole(stage.global_batch_size)},
    {title: "Steps", number: true, cell: (stage) => whole(stage.steps)},
    {title: "Step time", number: true, cell: (stage) => duration(stage.step_time_s)},
    {title: "Together", number: true, cell: (stage) => longDuration(stage.steps * stage.step_time_s)},
  ], run.stages));
  byId("run-batches").append(columns);
}

function showWholeRun() {
  if (!run) {
    byId("whole-run").remove();
    return;
  }
  byId("run-lead").textContent = `Training on ${count(run.tokens)} tokens takes ${whole(run.steps)} steps. This is what all of ` +
      "them take together, with what comes in between.";
  showNumbers("run-numbers", runNumbers());
  byId("run-time").append(waterfallTable("Totals in bold, what is added in between", placedBars(runBars(), 0), [
    {title: "Time", number: true, cell: (bar) => signed(bar, longDuration)},
    {title: "Of the run", number: true, cell: (bar) => percent(bar.value / run.wall_s)},
  ]));
  showIntervals();
  describe("run-basis", runBasis());
  showBatchSizes();
}

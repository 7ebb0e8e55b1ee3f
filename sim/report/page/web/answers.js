// What was asked beside the run: how sure the step time is, what it is bound by, what changes would do. A section without an
// answer is taken away.

/** Changes of the step by less than this share, of either sign, are not worth a row. */
const smallEffect = 0.005;

/** Removes a section unless there is something to show in it. */
function showIfAsked(id, answer, show) {
  if (answer === null || answer === undefined || answer.length === 0) byId(id).remove();
  else show(answer);
}

function paragraphs(texts) {
  return texts.map((text) => make("p", {}, text));
}

function showJitter(jitter) {
  byId("jitter-lead").textContent = `${whole(jitter.steps)} steps with GPUs and NICs that are slower by chance, ` +
      `by ${percent(jitter.compute)} and ${percent(jitter.network)} (standard deviation, seed ${jitter.seed}); without it ` +
      `one takes ${duration(step)}.`;
  const more = (seconds) => `${change(seconds / step - 1)} against the step without`;
  showNumbers("jitter-numbers", [["Mean", "mean_s"], ["Half within", "p50_s"], ["90\u00a0% within", "p90_s"], ["99\u00a0% within", "p99_s"]]
      .map(([name, key]) => [name, duration(jitter[key]), more(jitter[key])]));
}

/** A row of the constants: from the shortest step to the longest that it makes. */
function constantRow(constant) {
  const ends = [constant.step_time_at_low_s, constant.step_time_at_high_s];
  return Object.assign({from: Math.min(step, ...ends), to: Math.max(step, ...ends), colours: ["gain", "cost"]}, constant);
}

function showUncertainty(uncertainty) {
  const [low, high] = [uncertainty.step_time_low_s, uncertainty.step_time_high_s];
  byId("uncertainty-lead").textContent = `The step takes ${duration(low)} to ${duration(high)} in 90\u00a0% of ` +
      `${whole(uncertainty.samples)} samples of the constants that are not known exactly (seed ${uncertainty.seed}), ` +
      `which is ${change(low / step - 1)} to ${change(high / step - 1)} against the step as simulated. Below, each alone is set to both ends of ` +
      "its range. How far the model itself is off comes on top: docs/accuracy.md of trainsim.";
  const constants = uncertainty.constants.map(constantRow);
  const worth = constants.filter((row) => row.to - row.from >= smallEffect * step);
  const all = {name: "All together", from: low, to: high, colours: ["total", "total"], together: true};
  byId("uncertainty-table").append(uncertaintyTable([all, ...worth]));
  if (worth.length < constants.length) {
    byId("uncertainty-table").append(make("p", {class: "small"}, `${constants.length - worth.length} other constants move the ` +
        `step by less than ${percent(smallEffect)}; they are in the JSON output.`));
  }
}

function uncertaintyTable(rows) {
  const least = Math.min(step, ...rows.map((row) => row.from));
  const width = Math.max(step, ...rows.map((row) => row.to)) - least || 1;
  // What is shorter than the step is left of where the colour changes; an interval may lie on one side of it.
  const bar = ({from, to, colours}) => {
    const middle = Math.min(to, Math.max(from, step));
    return track([[colours[0], (middle - from) / width], [colours[1], (to - middle) / width]], (from - least) / width);
  };
  const end = (seconds) => [duration(seconds), make("div", {class: "small"}, change(seconds / step - 1))];
  return table(`Step times at the ends of ranges; bars from ${duration(least)} to ${duration(least + width)} ` +
      `change colour at the step as simulated`, [
    {title: "Constant", cell: (row) => breakable(row.name)},
    {title: "Known by", cell: (row) => row.together ? "" : row.grade},
    {title: "Value", number: true, cell: (row) => row.together ? "" : row.value},
    {title: "Range", number: true, cell: (row) => row.together ? "" : `${row.low} to ${row.high}`},
    {title: "", class: "bar-cell", cell: bar},
    {title: "Step at the low end", number: true, cell: (row) => end(row.together ? row.from : row.step_time_at_low_s)},
    {title: "Step at the high end", number: true, cell: (row) => end(row.together ? row.to : row.step_time_at_high_s)},
  ], rows, (row) => row.together ? "totals" : "");
}

function showSensitivity(sensitivity) {
  const {rows} = sensitivity;
  byId("sensitivity-sentences").append(...paragraphs(sensitivity.sentences));
  const most = Math.max(...rows.map((row) => Math.abs(row.gain)), 1e-9);
  byId("sensitivity-table").append(table(`Each made ${percent(sensitivity.factor - 1)} better, one at a time, and simulated`, [
    {title: "What", cell: (row) => [row.meaning, make("div", {class: "small"}, make("code", {}, breakable(row.name)))]},
    {title: "Step time", number: true, cell: (row) => duration(row.step_time_s)},
    {title: "Gain", number: true, cell: (row) => Math.abs(row.gain) < 5e-6 ? "none" : duration(row.gain_s).replace("-", "−")},
    {title: "Of the step", number: true, cell: (row) => percent(Math.abs(row.gain) < 5e-6 ? 0 : row.gain)},
    {title: "", class: "bar-cell", cell: (row) => track([[row.gain < 0 ? "cost" : "gain", Math.abs(row.gain) / most]])},
    {title: "Elasticity", number: true, cell: (row) => (Math.round(1e3 * row.elasticity) / 1e3 + 0).toFixed(3).replace("-", "−")},
    ...(rows.some((row) => row.verdict !== result.verdict) ? [{title: "Memory", cell: (row) => row.verdict}] : []),
  ], rows));
}

/** "gpus 8 → 16": what a change makes of the input. */
function inputText({key, values: [from, to]}) {
  return [...breakable(key), ` ${from === null ? "–" : from} → ${to === null ? "–" : to}`];
}

function showWhatIfs(answers) {
  const own = {name: "A: as it is", result, inputs: []};
  const rows = [own, ...answers.map((answer) =>
      ({name: `${answer.difference.to}: ${answer.change}`, result: answer.result, inputs: answer.inputs}))];
  const against = (row, key) => row === own ? "" : change(row.result[key] / result[key] - 1);
  byId("what-if-table").append(table("Each simulated on its own, against the run as it is", [
    {title: "Change", cell: (row) => [row.name, ...row.inputs.map((input) => make("div", {class: "small"}, inputText(input)))]},
    {title: "Step time", number: true, cell: (row) => duration(row.result.step_time_s)},
    {title: "Difference", number: true, cell: (row) => against(row, "step_time_s")},
    {title: "Tokens/s", number: true, cell: (row) => row.result.tokens_per_s < 1e6 ? whole(row.result.tokens_per_s) : count(row.result.tokens_per_s)},
    {title: "Difference", number: true, cell: (row) => against(row, "tokens_per_s")},
    {title: "MFU", number: true, cell: (row) => percent(row.result.mfu)},
    {title: "Peak memory", number: true, cell: (row) => gib(row.result.peak_memory_bytes)},
    {title: "Memory", cell: (row) => row.result.verdict},
  ], rows, (row) => row === own ? "totals" : ""));
  byId("what-if-moves").append(...answers.flatMap(whatIfMoves));
}

/** Why a change does what it does: its sentences, and tables of where time and memory move. */
function whatIfMoves({change: asked, difference}) {
  const unit = difference.per === "token" ? "Time of a million tokens" : "Time of a step";
  const memoryMoved = Object.values(difference.memory_at_peak).some((bytes) => bytes !== 0);
  return [make("h3", {}, `${difference.to}: ${asked}`), ...paragraphs(difference.sentences),
    make("details", {}, make("summary", {}, `From A to ${difference.to}, part by part`),
        make("div", {class: "wide"}, moveTable(unit, timeMoves(difference), duration),
            memoryMoved ? moveTable("Peak memory", memoryMoves(difference, result.peak_memory_bytes), gib) : null))];
}

function showPlacement(placement) {
  byId("placement-sentences").append(...paragraphs(placement.sentences));
  if (placement.rows.length === 0) return;
  const own = {meaning: "As it is", set: [], step_time_s: step, relative: 1, why: ""};
  byId("placement-table").append(table("Each simulated in full, the fastest first", [
    {title: "Placement", cell: (row) => [row.meaning, make("div", {class: "small"}, make("code", {}, breakable(row.set.join("  "))))]},
    {title: "Step time", number: true, cell: (row) => duration(row.step_time_s)},
    {title: "Difference", number: true, cell: (row) => row === own ? "" : change(row.relative - 1)},
    {title: "Why", cell: (row) => row.why},
  ], [own, ...placement.rows], (row) => row === own ? "totals" : ""));
}

function showAnswers() {
  showIfAsked("jitter", result.jitter, showJitter);
  showIfAsked("uncertainty", result.uncertainty, showUncertainty);
  showIfAsked("sensitivity", result.sensitivity, showSensitivity);
  showIfAsked("what-if", data.what_if, showWhatIfs);
  showIfAsked("placement", result.placement, showPlacement);
}

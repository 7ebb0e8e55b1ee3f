// Headline numbers, findings, and the waterfall.

const result = data.result;
const step = result.step_time_s;

function settingRows() {
  const plan = result.plan;
  const tensor = "TP" + plan.tensor_parallel + (plan.sequence_parallel ? "+SP" : "");
  const context = plan.context_parallel > 1 ? ` CP${plan.context_parallel}` : "";
  const chunks = plan.virtual_pipeline > 1 ? ` (${plan.virtual_pipeline} chunks)` : "";
  return [
    ["Model", `${result.model}, ${count(result.parameters)} parameters, sequence ${whole(plan.sequence_length)}`],
    ["Cluster", `${whole(plan.gpus)} × ${result.gpu} (${result.cluster})`],
    ["Plan", `${tensor} PP${plan.pipeline_parallel}${chunks}${context} DP${plan.data_parallel}, ${plan.schedule}, ` +
        `${whole(plan.micro_batches)} micro-batches of ${plan.micro_batch_size}, global batch ${whole(plan.global_batch_size)}`],
    ["Settings", `recompute ${plan.recompute.granularity}, sharding ${plan.sharding}, ${plan.precision} with ` +
        `${plan.gradient_bytes === 4 ? "fp32" : "2-byte"} gradients, ${plan.attention} attention`],
  ];
}

/** "165 228 tokens/s", the unit smaller. */
function tokens(rate) {
  const text = rate < 1e6 ? whole(rate) : count(rate);
  return [text, make("span", {class: "unit"}, " tokens/s")];
}

function headlineNumbers() {
  const theory = result.bubble_ratio_theory;
  const headroom = result.memory_headroom_bytes;
  return [
    ["Step time", duration(step), result.uncertainty === null ? "one training step" :
        `90 % between ${duration(result.uncertainty.step_time_low_s)} and ${duration(result.uncertainty.step_time_high_s)}`],
    ["Throughput", tokens(result.tokens_per_s), number(result.tokens_per_s_per_gpu) + " per GPU, " +
        number(result.samples_per_s) + " sequences/s"],
    ["MFU", percent(result.mfu), `HFU ${percent(result.hfu)}; ${number(result.model_tflops_per_gpu)} TFLOP/s per GPU`],
    ["Bubble ratio", percent(result.bubble_ratio), theory === null ? "no closed form" : `closed form ${percent(theory)}`],
    ["Scaling efficiency", percent(result.scaling_efficiency), `of ${whole(result.plan.gpus)} GPUs without any loss`],
    ["Peak memory", gib(result.peak_memory_bytes), `${result.verdict}; ` +
        (headroom >= 0 ? `${gib(headroom)} left` : `${gib(-headroom)} too much`)],
  ];
}

function warnings() {
  const texts = [];
  if (!result.fits) texts.push(["The plan does not fit.", `The fullest rank needs ${gib(result.peak_memory_bytes)}; ` +
      `the GPU has ${gib(result.memory_capacity_bytes)} less ${gib(result.memory_reserve_bytes)} for contexts and libraries.`]);
  for (const warning of result.warnings) texts.push(["Warning.", warning]);
  return texts;
}

function showSummary() {
  describe("setting", settingRows());
  byId("headline").textContent = data.diagnosis.headline;
  showWarnings(warnings());
  showNumbers("numbers", headlineNumbers());
  byId("findings").append(...data.diagnosis.findings.map((finding) => make("article", {},
      make("h4", {}, finding.name, make("span", {class: "amount"}, finding.amount)), make("p", {}, finding.text),
      finding.advice === "" ? null : make("p", {class: "advice"}, make("strong", {}, "What would help: "), finding.advice))));
  data.made = `Simulated by trainsim ${data.version}: ${result.simulation.simulated_ranks} of ` +
      `${whole(result.simulation.world_size)} ranks` + (result.simulation.folded ? " (the others are identical)" : "") +
      `, ${whole(result.simulation.activities)} activities, in ${duration(result.simulation.wall_s)}.`;
}

/** Costs of a smaller share of the step are not worth a bar. */
const tiny = 1e-5;

function showEfficiency() {
  const bars = placedBars(data.waterfall.map((bar) => Object.assign({value: bar.seconds}, bar)), tiny * step);
  byId("waterfall").append(waterfallTable("From the arithmetic at peak to the step: totals in bold, costs in between", bars, [
    {title: "Time", number: true, cell: (bar) => signed(bar, duration)},
    {title: "Of the step", number: true, cell: (bar) => percent(bar.value / step)},
  ]));
  showList("notes", result.notes);
}

function rankLabel(rank) {
  return `Stage ${rank.stage}, rank ${rank.rank}`;
}

/** Rows at most that a table of ranks shows; the rest is in the JSON output. */
const rankRows = 64;

function showStages() {
  const ranks = result.ranks.slice(0, rankRows);
  const busiest = result.ranks.reduce((a, b) => b.busy_s > a.busy_s ? b : a);
  const mean = d3.sum(result.ranks, (rank) => rank.busy_s * rank.represents) / d3.sum(result.ranks, (rank) => rank.represents);
  byId("stages-lead").textContent = "One row per group of identical ranks: where its step goes. " +
      `Stage ${busiest.stage} works longest, ${percent(busiest.busy_s / mean - 1)} longer than the mean.` +
      (ranks.length < result.ranks.length ? ` ${result.ranks.length - ranks.length} more rows are in the JSON output.` : "");
  legend("stages-legend", stageParts.map(([name, text]) => [name, text]));
  const part = (rank, causes) => d3.sum(causes, (cause) => rank.breakdown[cause] ?? 0);
  byId("stages-table").append(table("Shares of the step by stage", [
    {title: "Stage", cell: (rank) => `${rank.stage}`},
    {title: "Rank", number: true, cell: (rank) => whole(rank.rank)},
    {title: "Alike", number: true, cell: (rank) => whole(rank.represents)},
    {title: "Layers", number: true, cell: (rank) => `${rank.layers}`},
    {title: "Step", class: "bar-cell", cell: (rank) =>
        track(stageParts.map(([name, , causes]) => [name, part(rank, causes) / step]))},
    {title: "Busy", number: true, cell: (rank) => duration(rank.busy_s)},
    {title: "Bubble", number: true, cell: (rank) => percent(rank.bubble_s / (rank.busy_s + rank.bubble_s))},
    {title: "Communi\u00adcation", number: true, cell: (rank) => percent(part(rank, stageParts[4][2]) / step)},
    {title: "Imbal\u00adance", number: true, cell: (rank) => percent(rank.breakdown.imbalance / step)},
    {title: "Peak memory", number: true, cell: (rank) => gib(rank.peak_memory_bytes)},
  ], ranks));
}

// The page of a search.

const search = data.search;
const plans = search.plans;
const best = plans.length > 0 ? plans[0] : null;
/** All plans that tables name: the best, and the configuration's own. */
const named = plans.map((plan, index) => Object.assign({place: String(index + 1), rank: index + 1}, plan))
    .concat(search.own === null ? [] : [Object.assign({place: "yours", rank: null}, search.own)]);

const objectives = {
  step_time: "the shortest step",
  cost: search.price_per_gpu_hour === null ? "the fewest GPU-hours" : "the lowest cost",
  gpus: "the fewest GPUs, and then the shortest step",
};

function searchSettings() {
  const limits = search.limits.length === 0 ? [] : [["Limits", search.limits.join(", ")]];
  const price = search.price_per_gpu_hour === null ? [] : [["Price", `$${number(search.price_per_gpu_hour)} per GPU-hour`]];
  return [["Model", search.model], ["Cluster", search.cluster], ["Global batch", whole(search.global_batch_size)],
    ["Looked for", objectives[search.objective]], ...limits, ...price];
}

function costText(plan) {
  return search.price_per_gpu_hour === null ? `${number(plan.gpu_hours_per_step)} GPU-hours`
      : `$${number(plan.gpu_hours_per_step * search.price_per_gpu_hour)}`;
}

function headroomText(plan) {
  return `${plan.verdict}` + (plan.memory_headroom_bytes >= 0 ? `, ${gib(plan.memory_headroom_bytes)} left`
      : `, ${gib(-plan.memory_headroom_bytes)} too much`);
}

function searchNumbers() {
  if (best === null) return [];
  return [
    ["Step time", duration(best.step_time_s), `${number(best.tokens_per_s)} tokens/s`],
    ["MFU", percent(best.mfu), `scaling efficiency ${percent(best.scaling_efficiency)}`],
    ["Bubble ratio", percent(best.bubble_ratio), `${whole(best.gpus)} GPUs`],
    ["Peak memory", gib(best.peak_memory_bytes), headroomText(best)],
    ["Cost of a step", costText(best), `${whole(best.gpus)} GPUs for ${duration(best.step_time_s)}`],
    ["Simulated in full", whole(search.confirmed), `of ${whole(search.legal)} legal plans; the others can't be better`],
  ];
}

/** The options that turn the configuration into a plan. */
function overridesText(plan) {
  const quote = (text) => /[ {}[\]]/.test(text) ? `'${text}'` : text;
  return plan.overrides.map((text) => `--set ${quote(text)}`).join(" ");
}

function showBest() {
  if (best === null) return;
  byId("run-best").append(best.overrides.length === 0 ? make("p", {}, "The best is the configuration’s own plan.")
      : make("div", {}, make("p", {}, "To run the best, add to the command line of ", make("code", {}, "trainsim run"), ":"),
          make("pre", {}, overridesText(best))));
}

function showRanking() {
  byId("ranking-lead").textContent = "Each plan is compared with the first: what it takes more, and which causes moved most.";
  if (named.length === 0) return byId("ranking-table").append(make("p", {}, "There is none."));
  const slowest = Math.max(...named.map((plan) => plan.step_time_s));
  byId("ranking-table").append(table("All were simulated in full", [
    {title: "", cell: (plan) => plan.place},
    {title: "Plan", cell: (plan) => [plan.label, plan.why === "" ? null : make("div", {class: "small"}, plan.why)]},
    {title: "", class: "bar-cell", cell: (plan) => track([["forward", plan.step_time_s / slowest]])},
    {title: "Step time", number: true, cell: (plan) => duration(plan.step_time_s)},
    {title: search.objective === "step_time" ? "More" : "More GPU-hours", number: true, cell: (plan) => plan === named[0] ? "" : change(plan.relative - 1)},
    {title: "Memory", number: true, cell: (plan) => gib(plan.peak_memory_bytes)},
  ], named, (plan) => plan.rank === 1 ? "totals" : ""));
}

/** Plans of the charts: those simulated in full in the order of the fronts, the configuration's own last, and the others. */
const simulated = plans.concat(data.judged.filter((plan) => plan.simulated), search.own === null ? [] : [search.own]);
/** Whether the configuration's own plan is one that may be chosen. */
const ownCompetes = search.own !== null && search.own_keeps_limits && search.own.verdict !== "does not fit";
const bounded = data.judged.filter((plan) => !plan.simulated);

function showFront(id, front, {title, value, write, unit, label}) {
  byId(id + "-lead").textContent = front.sentence + " The search looks for " + objectives[search.objective] + ": slower plans " +
      "that need less were mostly not simulated, so that there may be others at the slow end of the line.";
  const [size, name] = timeUnit(Math.max(...simulated.map((plan) => plan.step_time_s)));
  const place = (plan) => front.points.indexOf(simulated.indexOf(plan)) + 1;
  const point = (plan) => ({x: plan.step_time_s / size, y: value(plan) / unit[0], front: place(plan),
    fits: plan !== search.own || ownCompetes, hollow: plan.simulated === false,
    name: (plan === search.own ? "Yours: " : "") + plan.label, mark: plan === search.own ? "yours" : "",
    text: `${plan.simulated === false ? "at least " : ""}${duration(plan.step_time_s)}, ${write(plan)}` +
        (plan === search.own && !search.own_keeps_limits ? ", breaks a limit" : "")});
  new FrontChart(id, simulated.concat(bounded).map(point), {x: {title: "Step time", unit: name}, y: {title, unit: unit[1]}, label,
    misfits: "do not fit into memory" + (search.limits.length > 0 ? " or break a limit" : "")});
  byId(id).append(table("On the line", [
    {title: "", cell: (plan) => String(place(plan))},
    {title: "Plan", cell: (plan) => plan.label},
    {title: "GPUs", number: true, cell: (plan) => whole(plan.gpus)},
    {title: "Step time", number: true, cell: (plan) => duration(plan.step_time_s)},
    {title: "Peak memory", number: true, cell: (plan) => gib(plan.peak_memory_bytes)},
    {title: "Cost of a step", number: true, cell: costText},
  ], front.points.map((index) => simulated[index])));
}

function showFronts() {
  if (best === null) return byId("front").remove();
  const left = data.judged_in_all - data.judged.length;
  showFront("memory-front", data.memory_front, {title: "Peak memory", value: (plan) => plan.peak_memory_bytes,
    write: (plan) => gib(plan.peak_memory_bytes), unit: [2 ** 30, "GiB"], label: "Step time against peak memory of the plans"});
  byId("memory-front").append(make("p", {class: "help"}, `The chart has ${whole(plans.length + data.judged.length)} plans that fit ` +
      "and keep the limits; hollow ones were not simulated in full, and have the time without contention." +
      (left > 0 ? ` ${whole(left)} slower ones are left out.` : "")));
  if (data.cost_front === null) return byId("cost-part").remove();
  showFront("cost-front", data.cost_front, {title: "GPU-hours per step", value: (plan) => plan.gpu_hours_per_step,
    write: (plan) => `${whole(plan.gpus)} GPUs, ${costText(plan)}`, unit: [1, ""], label: "Step time against cost of the plans"});
}

function showSettings() {
  if (named.length === 0) return byId("settings").remove();
  const setting = (title, key) => ({title, number: typeof named[0][key] === "number", value: (plan) => plan[key],
    cell: (plan) => String(plan[key])});
  // Of one number of GPUs there is no column: the page has it above.
  byId("settings-table").append(sortableTable("The best plans, and yours", [
    {title: "Plan", value: (plan) => plan.rank, cell: (plan) => plan.place},
    ...(new Set(named.map((plan) => plan.gpus)).size > 1 ? [setting("GPUs", "gpus")] : []),
    {title: "TP", value: (plan) => plan.tensor_parallel, cell: (plan) => plan.tensor_parallel + (plan.sequence_parallel ? "+SP" : "")}, setting("PP", "pipeline_parallel"),
    setting("VPP", "virtual_pipeline"), ...(named.some((plan) => plan.context_parallel > 1) ? [setting("CP", "context_parallel")] : []),
    ...(named.some((plan) => plan.expert_parallel > 1) ? [setting("EP", "expert_parallel")] : []),
    setting("DP", "data_parallel"), setting("Micro-batch", "micro_batch_size"),
    setting("Schedule", "schedule"), setting("Sharding", "sharding"),
    {title: "Recompute", value: (plan) => plan.recompute, cell: (plan) => breakable(plan.recompute)},
    {title: "Step time", number: true, value: (plan) => plan.step_time_s, cell: (plan) => duration(plan.step_time_s)},
    {title: "MFU", number: true, value: (plan) => plan.mfu, cell: (plan) => percent(plan.mfu)},
    {title: "Bubble", number: true, value: (plan) => plan.bubble_ratio, cell: (plan) => percent(plan.bubble_ratio)},
    {title: "Peak memory", number: true, value: (plan) => plan.peak_memory_bytes, cell: (plan) => gib(plan.peak_memory_bytes)},
    {title: search.price_per_gpu_hour === null ? "GPU-hours" : "Cost", number: true, value: (plan) => plan.gpu_hours_per_step,
      cell: (plan) => costText(plan).replace(" GPU-hours", "")},
  ], named, (plan) => plan.rank === 1 ? "totals" : "", [0, true]));
}

function countTable(caption, rows) {
  const most = Math.max(...rows.map((row) => row.count));
  return table(caption, [
    {title: "Plans", number: true, cell: (row) => whole(row.count)},
    {title: "", class: "bar-cell", cell: (row) => track([["waiting", row.count / most]])},
    {title: "Why", cell: (row) => row.reason},
  ], rows);
}

function showOthers() {
  byId("others-lead").textContent = `${whole(search.considered)} combinations of settings, ${whole(search.legal)} of them legal. ` +
      `Of ${whole(search.ranked)} memory and time without contention were worked out, ${whole(search.confirmed)} were simulated in ` +
      "full. Plans are left out by bounds, never by a guess.";
  const kept = plans.length === 0 ? [] : [{count: plans.length, reason: "are the best, above"}];
  if (search.rejected.length + kept.length > 0) byId("others-table").append(countTable("Legal plans", kept.concat(search.rejected)));
  if (search.illegal.length > 0)
    byId("illegal-table").append(countTable("Illegal combinations, by the first rule that they break", search.illegal));
}

describe("setting", searchSettings());
byId("headline").textContent = data.headline;
if (!search.complete) showWarnings([["Incomplete.", "The search was interrupted: these are the best found until then; better ones may exist."]]);
showNumbers("numbers", searchNumbers());
showBest();
showRanking();
showFronts();
showSettings();
showOthers();
data.made = `Simulated by trainsim ${data.version}.`;

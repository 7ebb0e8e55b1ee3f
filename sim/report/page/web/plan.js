// Changes, the plan as resolved, and what is assumed.

function showChanges() {
  if (data.changes.length === 0) {
    byId("changes-table").append(make("p", {}, "No single change is legal here."));
    return;
  }
  byId("changes-table").append(table("The most tokens per second first", [
    {title: "Change", cell: (each) => [each.label, make("div", {class: "small"}, make("code", {}, each.set.join("  ")))].flat()},
    {title: "Tokens/s", number: true, cell: (each) => change(each.relative_throughput - 1)},
    {title: "Step time", number: true, cell: (each) => duration(each.step_time_s)},
    {title: "Bubble", number: true, cell: (each) => percent(each.bubble_ratio)},
    {title: "Peak memory", number: true, cell: (each) => gib(each.peak_memory_bytes)},
    {title: "Memory", cell: (each) => each.verdict},
  ], data.changes));
}

function text(value) {
  if (value === null) return "none";
  if (Array.isArray(value)) return value.map(text).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([key, inner]) => `${words(key)}: ${text(inner)}`).join("; ");
  return typeof value === "number" ? (Number.isInteger(value) ? whole(value) : String(value)) : String(value);
}

function showPlan() {
  const rows = Object.entries(result.plan).concat(Object.entries(data.model_shape));
  const columns = make("div", {class: "columns"});
  columns.append(table("Plan and shape of the model", [
    {title: "Key", cell: ([key]) => breakable(key)},
    {title: "Value", cell: ([, value]) => text(value)},
  ], rows.filter(([key], index) => rows.findIndex(([other]) => other === key) === index)));
  byId("plan-table").append(columns);
  byId("defaults").append(table("Taken from defaults or derived", [
    {title: "Key", cell: ([key]) => breakable(key)},
    {title: "Value", cell: ([, value]) => value},
  ], data.defaults));
  showConstants();
  showAssumptions();
}

function showConstants() {
  if (data.constants.length === 0) {
    byId("constants-details").remove();
    return;
  }
  byId("constants").append(table("Constants of the GPU and its links; trainsim run --uncertainty varies those with a range", [
    {title: "Constant", cell: (constant) => breakable(constant.path)},
    {title: "Value", number: true, cell: (constant) => constant.value},
    {title: "Known by", cell: (constant) => constant.grade},
    {title: "Range", number: true, cell: (constant) => constant.low === null ? "" : `${constant.low} to ${constant.high}`},
  ], data.constants));
}

function showAssumptions() {
  const networks = {
    flow: "Transfers share links max-min fairly, as flows in SimGrid.",
    ideal: "Every transfer has its links to itself (network: ideal).",
    free: "Communication takes no time (network: free).",
    step: "Every step of a ring is a message of its own (network: step).",
  };
  const notes = [
    networks[result.simulation.network],
    "Every step is alike: no stragglers, failures, checkpoints or data loading, unless the configuration has them.",
    "Attention counts in full in FLOPs, not halved for the causal mask; its time does reflect the mask.",
    `MFU and HFU compare with the dense peak of ${result.plan.precision}, ${number(result.peak_flops_per_gpu / 1e12)} TFLOP/s.`,
    `The GPU keeps ${gib(result.memory_reserve_bytes)} for the CUDA context and libraries, which no tensor may take.`,
    "How far such predictions are from measured runs: docs/accuracy.md of trainsim.",
  ];
  byId("assumptions").append(...notes.map((note) => make("li", {}, note)));
}

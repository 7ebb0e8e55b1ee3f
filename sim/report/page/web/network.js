// What is sent, and over which links.

/** Busy for less of the step, a link is not worth a row. */
const idle = 0.001;

function showCommunication() {
  const transfers = result.communication;
  if (transfers.length === 0) {
    byId("communication").querySelectorAll("h3, div, ul, p:not(.lead)").forEach((node) => node.remove());
    byId("communication-lead").textContent = "Nothing is sent in this step, or communication was switched off.";
    return;
  }
  const waited = d3.sum(Object.values(data.exposed_s));
  byId("communication-lead").textContent = `Compute waits ${duration(waited)} for transfers, ${percent(waited / step)} of ` +
      "the step; what runs beside compute costs nothing. " + (result.contention_s === null ? "" :
      `Links that transfers share cost ${duration(result.contention_s)} (${percent(result.contention_s / step)}).`);
  const seen = new Set();
  const first = transfers.map((transfer) => seen.size < seen.add(transfer.kind).size);
  const longest = Math.max(...transfers.map((transfer) => transfer.alone_s));
  byId("transfers").append(table("Per rank and step, mean over ranks", [
    {title: "For", cell: (transfer) => transfer.kind},
    {title: "Operation", cell: (transfer) => words(transfer.op)},
    {title: "Algorithm", cell: (transfer) => transfer.algorithm === undefined ? "" : `${transfer.algorithm} ${transfer.protocol}`},
    {title: "Calls", number: true, cell: (transfer) => number(transfer.calls)},
    {title: "Tensors", number: true, cell: (transfer) => gib(transfer.tensor_bytes)},
    {title: "Alone", number: true, cell: (transfer) => duration(transfer.alone_s)},
    {title: "", class: "bar-cell", cell: (transfer) => track([["communication", transfer.alone_s / longest]])},
    {title: "Waited for", number: true, cell: (transfer) =>
        first[transfers.indexOf(transfer)] ? duration(data.exposed_s[transfer.kind]) : ""},
  ], transfers));
  showGroups();
  showLinks();
}

/** "all stages", "stages 1-14", "stages 0, 7". */
function stagesText(stages) {
  if (stages.length === result.plan.pipeline_parallel && stages.length > 2) return "all stages";
  const parts = [];
  stages.forEach((stage, index) => {
    if (index > 0 && stage === stages[index - 1] + 1) parts[parts.length - 1][1] = stage;
    else parts.push([stage, stage]);
  });
  return (stages.length > 1 ? "stages " : "stage ") +
      parts.map(([first, last]) => first === last ? `${first}` : `${first}–${last}`).join(", ");
}

function showGroups() {
  const groups = result.communication_groups;
  const whose = (group) =>
      words(group.group) + (result.plan.pipeline_parallel > 1 ? `, ${stagesText(group.stages)}` : "");
  byId("groups").append(table("Per rank and step, mean over the ranks of all such groups", [
    {title: "Group", cell: whose},
    {title: "Ranks / nodes", number: true, cell: (group) => `${number(group.size)} / ${number(group.nodes)}`},
    {title: "Operation", cell: (group) =>
        words(group.op) + (group.algorithm === null ? "" : `, ${group.algorithm} ${group.protocol}`)},
    {title: "Sends", number: true, cell: (group) => gib(group.sent_bytes)},
    {title: "Takes", number: true, cell: (group) => duration(group.time_s)},
    {title: "Waited for", number: true, cell: (group) => duration(group.exposed_s)},
    {title: "Hidden", number: true, cell: (group) => duration(group.hidden_s)},
    {title: "GB/s", number: true, cell: (group) => number(group.bus_bandwidth_bytes_per_s / 1e9)},
    {title: "Held up by", cell: (group) => group.limit.replace("->", "→")},
  ], groups));
}

/** "gpu → node switch" from "gpu 3 -> node switch 0"; the same for the opposite direction. */
function linkType(link) {
  return link.name.replace(/[0-9]+/g, "").split("->").map((end) => end.trim()).sort().join(" ");
}

/** What a link carries by kind of transfer: "data 81 %, pipeline 19 %". */
function linkUsers(link) {
  const total = d3.sum(Object.values(link.bytes));
  const parts = Object.entries(link.bytes).sort((a, b) => b[1] - a[1]);
  return parts.map(([kind, bytes]) => parts.length === 1 ? kind : `${kind} ${percent(bytes / total)}`).join(", ");
}

/** The busiest link of each type; the list of the result begins with the busiest of all. */
function showLinks() {
  const types = new Set();
  const links = result.links.filter((link) => link.utilization >= idle && types.size < types.add(linkType(link)).size);
  byId("links").append(table("The busiest link of each type; the JSON output has all groups of equal links", [
    {title: "Link", cell: (link) => link.name.replace("->", "→")},
    {title: "Rate", number: true, cell: (link) => number(link.bandwidth_bytes_per_s / 1e9) + "\u00a0GB/s"},
    {title: "Carries", number: true, cell: (link) => gib(d3.sum(Object.values(link.bytes)))},
    {title: "For", cell: linkUsers},
    {title: "", class: "bar-cell", cell: (link) => track([["communication", Math.min(1, link.utilization)]])},
    {title: "Busy", number: true, cell: (link) => percent(link.utilization)},
  ], links));
  if (data.link_curves.length > 0) new LinkChart();
  else for (const id of ["link-choice", "link-legend", "link-chart", "link-help"]) (byId(id).closest("p") || byId(id)).remove();
}

const kindColours = {tensor: "forward", data: "communication", embedding: "launch", expert: "optimizer",
  pipeline: "backward", context: "weight"};

/** How busy a link is over the step, by kind of transfer. */
class LinkChart {
  constructor() {
    this.box = byId("link-chart");
    this.margin = {top: 10, right: 12, bottom: 24, left: 60};
    this.height = 180;
    this.curve = data.link_curves[0];
    this.at = null;
    const choice = byId("link-choice");
    data.link_curves.forEach((curve, index) => choice.append(make("option", {value: index}, curve.name.replace("->", "→"))));
    choice.addEventListener("change", () => {
      this.curve = data.link_curves[choice.value];
      this.at = null;
      byId("link-selected").textContent = "";
      this.draw();
    });
    this.box.addEventListener("mousemove", (event) => {
      const part = this.partAt(d3.clientPoint(this.box, event)[0]);
      tooltip.show(event.pageX, event.pageY, this.text(part));
    });
    this.box.addEventListener("mouseleave", () => tooltip.hide());
    this.box.addEventListener("keydown", (event) => this.key(event));
    drawn(() => this.draw());
  }

  get kinds() { return Object.entries(this.curve.busy); }
  get parts() { return this.kinds[0][1].length; }

  partAt(x) {
    const share = (x - this.margin.left) / (this.box.clientWidth - this.margin.left - this.margin.right);
    return Math.max(0, Math.min(this.parts - 1, Math.floor(share * this.parts)));
  }

  key(event) {
    const move = {ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20}[event.key];
    if (move === undefined) return;
    event.preventDefault();
    this.at = Math.max(0, Math.min(this.parts - 1, (this.at === null ? -1 : this.at) + move));
    byId("link-selected").textContent = this.text(this.at) + ".";
    this.draw();
  }

  text(part) {
    const width = step / this.parts;
    const used = this.kinds.filter(([, busy]) => busy[part] > 0).map(([kind, busy]) => `${kind} ${percent(busy[part])}`);
    return `${duration(part * width)} to ${duration((part + 1) * width)}: ${used.length > 0 ? used.join(", ") : "idle"}`;
  }

  draw() {
    const x = d3.scaleLinear().domain([0, step]).range([this.margin.left, this.box.clientWidth - this.margin.right]);
    const y = d3.scaleLinear().domain([0, 100]).range([this.height - this.margin.bottom, this.margin.top]);
    d3.select(this.box).selectAll("svg").remove();
    const svg = d3.select(this.box).append("svg").attr("height", this.height).attr("aria-hidden", "true");
    svg.append("g").attr("transform", `translate(0,${this.height - this.margin.bottom})`).call(timeAxis(x, this.box.clientWidth / 110));
    svg.append("g").attr("transform", `translate(${this.margin.left},0)`)
        .call(d3.axisLeft(y).ticks(4).tickSizeOuter(0).tickFormat((value) => value + " %"));
    const below = new Array(this.parts).fill(0);
    const edge = (part) => x(part * step / this.parts).toFixed(1);
    for (const [kind, busy] of this.kinds) {
      let path = `M${edge(0)},${y(100 * below[0]).toFixed(1)}`;
      busy.forEach((share, part) => { path += `V${y(Math.min(100, 100 * (below[part] + share))).toFixed(1)}H${edge(part + 1)}`; });
      for (let part = this.parts - 1; part >= 0; part--) path += `V${y(100 * below[part]).toFixed(1)}H${edge(part)}`;
      svg.append("path").attr("d", path + "Z").attr("fill", colour(kindColours[kind]));
      busy.forEach((share, part) => { below[part] = Math.min(1, below[part] + share); });
    }
    byId("link-legend").replaceChildren();
    legend("link-legend", this.kinds.map(([kind]) => [kindColours[kind], kind]));
    if (this.at === null) return;
    const at = x((this.at + 0.5) * step / this.parts);
    svg.append("line").attr("x1", at).attr("x2", at).attr("y1", this.margin.top).attr("y2", this.height - this.margin.bottom)
        .attr("stroke", colour("text"));
  }
}

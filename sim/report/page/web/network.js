// What is sent, and over which links.

/** Busy for less of the step, a link is not worth a row. */
const idle = 0.001;

function showCommunication() {
  const transfers = result.communication;
  if (transfers.length === 0) {
    byId("communication").querySelectorAll("h3, div").forEach((node) => node.remove());
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
  showLinks();
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
}

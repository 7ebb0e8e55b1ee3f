// Memory over the step, and what is alive at the peak.

class MemoryChart {
  constructor(index) {
    this.box = byId("memory-chart");
    this.index = index;
    this.at = null;
    this.margin = {top: 10, right: 12, bottom: 24, left: 60};
    this.height = 260;
    this.box.addEventListener("mousemove", (event) => this.read(this.columnAt(d3.clientPoint(this.box, event)[0]), event));
    this.box.addEventListener("mouseleave", () => tooltip.hide());
    this.box.addEventListener("keydown", (event) => this.key(event));
    drawn(() => this.draw());
  }

  get rank() { return result.ranks[this.index]; }
  curve(index) { return data.memory.programs[data.memory.program_of_rank[index]].highest_mib; }
  get points() { return this.curve(this.index); }

  columnAt(x) {
    const share = (x - this.margin.left) / (this.box.clientWidth - this.margin.left - this.margin.right);
    return Math.max(0, Math.min(this.points.length - 1, Math.floor(share * this.points.length)));
  }

  get peakColumn() {
    return Math.min(this.points.length - 1, Math.floor(this.rank.peak_time_s / step * this.points.length));
  }

  key(event) {
    const move = {ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20}[event.key];
    if (move === undefined && event.key !== "p" && event.key !== "P") return;
    event.preventDefault();
    const from = this.at === null ? this.peakColumn - (move || 0) : this.at;
    this.read(move === undefined ? this.peakColumn : Math.max(0, Math.min(this.points.length - 1, from + move)));
  }

  text(column) {
    const width = step / this.points.length;
    return `${duration(column * width)} to ${duration((column + 1) * width)}: at most ${gib(this.points[column] * 2 ** 20)}`;
  }

  read(column, event) {
    this.at = column;
    if (event === undefined) byId("memory-selected").textContent = this.text(column) + ".";
    else tooltip.show(event.pageX, event.pageY, make("strong", {}, gib(this.points[column] * 2 ** 20)), this.text(column));
    this.drawMark();
  }

  scales() {
    const usable = result.memory_capacity_bytes - result.memory_reserve_bytes;
    const most = Math.max(result.memory_capacity_bytes, result.peak_memory_bytes);
    return {
      x: d3.scaleLinear().domain([0, step]).range([this.margin.left, this.box.clientWidth - this.margin.right]),
      y: d3.scaleLinear().domain([0, 1.04 * most / 2 ** 30]).range([this.height - this.margin.bottom, this.margin.top]),
      usable,
    };
  }

  draw() {
    const {x, y, usable} = this.scales();
    d3.select(this.box).selectAll("svg").remove();
    const svg = d3.select(this.box).append("svg").attr("height", this.height).attr("aria-hidden", "true");
    svg.append("g").attr("transform", `translate(0,${this.height - this.margin.bottom})`)
        .call(timeAxis(x, this.box.clientWidth / 110));
    svg.append("g").attr("transform", `translate(${this.margin.left},0)`)
        .call(d3.axisLeft(y).ticks(5).tickSizeOuter(0).tickFormat((value) => value + " GiB"));
    const path = (points) => {
      let text = `M${x(0)},${y(points[0] / 1024)}`;
      points.forEach((mib, i) => { text += `V${y(mib / 1024).toFixed(1)}H${x((i + 1) * step / points.length).toFixed(1)}`; });
      return text;
    };
    const others = new Set(data.memory.program_of_rank);
    others.delete(data.memory.program_of_rank[this.index]);
    for (const other of others) {
      svg.append("path").attr("d", path(data.memory.programs[other].highest_mib)).attr("fill", "none")
          .attr("stroke", colour("line"));
    }
    svg.append("path").attr("d", path(this.points) + `V${y(0)}H${x(0)}Z`).attr("fill", colour("forward")).attr("opacity", 0.16);
    svg.append("path").attr("d", path(this.points)).attr("fill", "none").attr("stroke", colour("forward")).attr("stroke-width", 1.5);
    drawLimit(svg, x, y(usable / 2 ** 30), `usable: ${gib(usable)}`);
    const peak = svg.append("g");
    const [px, py] = [x(this.rank.peak_time_s), y(this.rank.peak_memory_bytes / 2 ** 30)];
    peak.append("circle").attr("cx", px).attr("cy", py).attr("r", 4).attr("fill", colour("backward"));
    const left = px > this.box.clientWidth / 2;
    peak.append("text").attr("class", "label").attr("x", px + (left ? -9 : 9)).attr("y", py - 8)
        .attr("text-anchor", left ? "end" : "start").text(`peak ${gib(this.rank.peak_memory_bytes)}`);
    this.mark = svg.append("line").attr("y1", this.margin.top).attr("y2", this.height - this.margin.bottom)
        .attr("stroke", colour("text")).attr("visibility", "hidden");
    this.drawMark();
  }

  drawMark() {
    if (this.at === null) return;
    const {x} = this.scales();
    const at = x((this.at + 0.5) * step / this.points.length);
    this.mark.attr("x1", at).attr("x2", at).attr("visibility", "visible");
  }

  show(index) {
    this.index = index;
    this.at = null;
    this.draw();
  }
}

function showMemoryTables(index) {
  const rank = result.ranks[index];
  const place = rank.peak_at.startsWith("outside") ? rank.peak_at : `in the ${rank.peak_at}`;
  byId("memory-lead").textContent = `Rank ${rank.rank} (stage ${rank.stage}) peaks at ${gib(rank.peak_memory_bytes)} after ` +
      `${duration(rank.peak_time_s)}, ${place}. Of the GPU’s ${gib(result.memory_capacity_bytes)}, ` +
      `${gib(result.memory_reserve_bytes)} are kept for contexts and libraries.` +
      (rank.peak_reserved_bytes === null ? "" : ` PyTorch’s allocator would hold ${gib(rank.peak_reserved_bytes)}.`);
  const categories = Object.entries(rank.memory_at_peak).filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]);
  const most = categories.length > 0 ? categories[0][1] : 1;
  byId("memory-categories").replaceChildren(table(`Rank ${rank.rank}`, [
    {title: "Category", cell: ([name]) => words(name)},
    {title: "", class: "bar-cell", cell: ([, bytes]) => track([["forward", bytes / most]])},
    {title: "Memory", number: true, cell: ([, bytes]) => gib(bytes)},
    {title: "Share", number: true, cell: ([, bytes]) => percent(bytes / rank.peak_memory_bytes)},
  ], categories));
  byId("memory-tensors").replaceChildren(table("Tensors of the same kind are added up over layers and micro-batches", [
    {title: "Tensor", cell: (tensor) => tensor.name},
    {title: "Category", cell: (tensor) => tensor.category === null ? "" : words(tensor.category)},
    {title: "Tensors", number: true, cell: (tensor) => whole(tensor.tensors)},
    {title: "Memory", number: true, cell: (tensor) => gib(tensor.bytes)},
    {title: "Share", number: true, cell: (tensor) => percent(tensor.bytes / rank.peak_memory_bytes)},
  ], data.memory.programs[data.memory.program_of_rank[index]].tensors));
}

function showMemory() {
  const select = byId("memory-rank");
  let fullest = 0;
  result.ranks.forEach((rank, index) => {
    if (rank.peak_memory_bytes > result.ranks[fullest].peak_memory_bytes) fullest = index;
  });
  result.ranks.slice(0, 1024).forEach((rank, index) => select.append(
      make("option", {value: index}, rankLabel(rank) + `: ${gib(rank.peak_memory_bytes)}` + (index === fullest ? " (fullest)" : ""))));
  select.value = fullest;
  const chart = new MemoryChart(fullest);
  showMemoryTables(fullest);
  select.addEventListener("change", () => {
    chart.show(Number(select.value));
    showMemoryTables(Number(select.value));
  });
}

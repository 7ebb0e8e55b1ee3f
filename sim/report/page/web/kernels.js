// Kernels by time, what speeding them up would give, and where they lie below the roofline.

const kernelRows = 24;

function achieved(kernel) {
  return kernel.flops > 0 ? number(kernel.flops / kernel.seconds / 1e12, 3) + "\u00a0TFLOP/s"
      : kernel.bytes > 0 ? number(kernel.bytes / kernel.seconds / 1e9, 3) + "\u00a0GB/s" : "";
}


function showKernels() {
  const kernels = data.kernels.slice(0, kernelRows);
  byId("kernels-lead").textContent = "The kernels that take most of the step. How much shorter it would be if one of them " +
      "took half its time, or none, is simulated without contention between transfers: the second is the most that work on " +
      "that kernel can give.";
  const longest = kernels.length > 0 ? kernels[0].seconds : 1;
  byId("kernel-table").append(table("Mean over ranks, all runs in a step together" +
      (kernels.length < data.kernels.length ? `; ${data.kernels.length - kernels.length} smaller ones are in the JSON output` : ""), [
    {title: "Kernel", cell: (kernel) => kernel.name},
    {title: "Kind", cell: (kernel) => kernel.kind},
    {title: "Runs", number: true, cell: (kernel) => whole(kernel.runs)},
    {title: "Time", number: true, cell: (kernel) => duration(kernel.seconds)},
    {title: "Of the step", number: true, cell: (kernel) => percent(kernel.seconds / step)},
    {title: "", class: "bar-cell", cell: (kernel) => track([["forward", kernel.seconds / longest]])},
    {title: "Reaches", number: true, cell: achieved},
    {title: "Step, if twice as fast", number: true, cell: (kernel) => saving(kernel.if_twice_as_fast_s)},
    {title: "Step, if free", number: true, cell: (kernel) => saving(kernel.if_free_s)},
  ], kernels));
  showRoofline();
}

/** "−4.4 %" for what a step would lose. */
function saving(seconds) {
  return seconds === null ? "" : change(seconds / data.uncontended_step_time_s - 1);
}

/** Outline of a mark about 0,0: a circle, a square for attention. */
function markPath(kind, size) {
  if (kind === "attention") return `M${-size},${-size}h${2 * size}v${2 * size}h${-2 * size}Z`;
  return `M${-size},0a${size},${size} 0 1,0 ${2 * size},0a${size},${size} 0 1,0 ${-2 * size},0Z`;
}

function showRoofline() {
  const kernels = data.kernels.filter((kernel) => kernel.flops > 0 && kernel.bytes > 0 && kernel.seconds > 0);
  const peak = result.peak_flops_per_gpu * result.gpu_clock_share;
  const bandwidth = data.memory_bandwidth_bytes_per_s;
  if (kernels.length === 0) {
    byId("roofline-lead").textContent = "No kernel of this run has operations and bytes: its times are measured ones.";
    byId("roofline").remove();
    return;
  }
  byId("roofline-lead").textContent = `Operations per second against operations per byte of device memory. Below ` +
      `${number(peak / bandwidth, 3)} FLOP/byte memory (${number(bandwidth / 1e9)} GB/s) is the limit, above it the ` +
      `arithmetic (${number(peak / 1e12)} TFLOP/s). Larger marks take more of the step; kernels without matrix ` +
      "operations are limited by memory and are in the table above. Attention counts the operations of the whole square, " +
      "of which a causal mask saves half, so that it can lie high.";
  const points = kernels.map((kernel) => ({kernel, x: kernel.flops / kernel.bytes, y: kernel.flops / kernel.seconds}));
  drawn(() => drawRoofline(points, peak, bandwidth));
}

function rooflineScales(points, peak, bandwidth, width, height, margin) {
  const xs = points.map((point) => point.x).concat(peak / bandwidth);
  const ys = points.map((point) => point.y).concat(peak);
  return [
    d3.scaleLog().domain([Math.min(...xs) / 3, Math.max(...xs) * 3]).range([margin.left, width - margin.right]),
    d3.scaleLog().domain([Math.min(...ys) / 2.5, Math.max(...ys) * 1.6]).range([height - margin.bottom, margin.top]),
  ];
}

function drawRoofline(points, peak, bandwidth) {
  const box = byId("roofline");
  const [width, height, margin] = [box.clientWidth, 320, {top: 8, right: 12, bottom: 38, left: 78}];
  const [x, y] = rooflineScales(points, peak, bandwidth, width, height, margin);
  d3.select(box).selectAll("svg").remove();
  const svg = d3.select(box).append("svg").attr("height", height).attr("role", "img")
      .attr("aria-label", "Roofline of the kernels; the table of kernels above has the same numbers");
  const short = (value) => value >= 1 ? d3.format("~r")(value) : d3.format("~g")(value);
  svg.append("g").attr("transform", `translate(0,${height - margin.bottom})`)
      .call(d3.axisBottom(x).ticks(6, short).tickSizeOuter(0));
  svg.append("g").attr("transform", `translate(${margin.left},0)`)
      .call(d3.axisLeft(y).ticks(4).tickFormat((value) => Math.log10(value) % 1 === 0 || y.ticks(4).length < 8 ? short(value / 1e12) : "")
          .tickSizeOuter(0));
  svg.append("text").attr("x", width - margin.right).attr("y", height - 6).attr("text-anchor", "end").text("FLOP per byte");
  svg.append("text").attr("transform", `translate(14,${margin.top}) rotate(-90)`).attr("text-anchor", "end").text("TFLOP/s");
  const [left, right] = x.domain();
  const knee = peak / bandwidth;
  const low = Math.max(left, y.domain()[0] / bandwidth);
  svg.append("path").attr("d", `M${x(low)},${y(low * bandwidth)}L${x(knee)},${y(peak)}H${x(right)}`).attr("fill", "none")
      .attr("stroke", colour("total")).attr("stroke-width", 1.5);
  const most = Math.max(...points.map((point) => point.kernel.seconds));
  for (const point of points) {
    svg.append("path").attr("transform", `translate(${x(point.x)},${y(point.y)})`)
        .attr("d", markPath(point.kernel.kind, 3 + 5 * Math.sqrt(point.kernel.seconds / most)))
        .attr("fill", colour(point.kernel.kind === "attention" ? "backward" : "forward")).attr("fill-opacity", 0.75)
        .attr("stroke", colour("background"))
        .on("mousemove", () => tooltip.show(d3.event.pageX, d3.event.pageY, make("strong", {}, point.kernel.name),
            `${achieved(point.kernel)} at ${number(point.x, 3)} FLOP/byte, ${duration(point.kernel.seconds)} of the step`))
        .on("mouseleave", () => tooltip.hide());
  }
  labelPoints(svg, points, x, y, width);
}

/** Names the largest kernels that lie apart from those named already. */
function labelPoints(svg, points, x, y, width) {
  const named = [];
  for (const point of points) {
    const [px, py] = [x(point.x), y(point.y)];
    if (named.some(([ox, oy]) => Math.abs(ox - px) < 190 && Math.abs(oy - py) < 16)) continue;
    named.push([px, py]);
    const left = px > width - 200;
    svg.append("text").attr("class", "label").attr("x", px + (left ? -12 : 12)).attr("y", py + 4)
        .attr("text-anchor", left ? "end" : "start").text(point.kernel.name);
    if (named.length === 7) return;
  }
}

// The pipeline timeline: one row per stage, drawn on a canvas because there may be tens of thousands of slots.

const slotNames = {F: "Forward", B: "Backward", W: "Weight gradient", A: "After the pipeline"};
const slotColours = {F: "forward", B: "backward", W: "weight", A: "after"};

/** What a slot was made of, in seconds after its begin: kernels, collectives, waits. Null if that was not kept. */
function slotParts(index) {
  if (index < 0) return null;
  const {names, lists} = data.timeline.parts;
  const unit = step / data.timeline.ticks_per_step;
  return d3.range(0, lists[index].length, 3).map((i) => {
    const [name, begin, duration] = lists[index].slice(i, i + 3);
    return {name: names[name], begin: begin * unit, end: (begin + duration) * unit};
  });
}

/** The rows with their slots in seconds; the time after a row's last slot is a slot of its own. */
function timelineRows() {
  const unit = step / data.timeline.ticks_per_step;
  return data.timeline.rows.map((row) => {
    const slots = Array.from(row.kinds, (kind, i) => ({
      kind, micro: row.micro_batches[i], chunk: row.chunks[i], begin: row.begins[i] * unit,
      end: (row.begins[i] + row.durations[i]) * unit, operations: data.timeline.operations[row.operations[i]],
      parts: row.parts[i],
    }));
    const last = slots[slots.length - 1];
    if (row.end * unit > last.end) slots.push({kind: "A", begin: last.end, end: row.end * unit, operations: [], parts: -1});
    return {stage: row.stage, rank: row.rank, represents: row.represents, slowdown: row.slowdown, slots};
  });
}

function slotTitle(slot) {
  if (slot.kind === "A") return "After the pipeline: gradients, optimizer, waiting for others";
  const chunk = result.plan.virtual_pipeline > 1 ? `, chunk ${slot.chunk}` : "";
  return `${slotNames[slot.kind]} of micro-batch ${slot.micro}${chunk}`;
}

function slotWhen(row, slot) {
  return `stage ${row.stage}, ${duration(slot.end - slot.begin)}, from ${duration(slot.begin)} to ${duration(slot.end)}`;
}

/** What takes most in a slot: names and times. */
function slotOperations(row, slot, most) {
  const timed = slot.operations.filter(([, , seconds]) => seconds > 0).slice(0, most);
  const computing = d3.sum(slot.operations, ([, , seconds]) => seconds) * row.slowdown;
  const rows = timed.map(([name, runs, seconds]) =>
      [name + (runs > 1 ? ` (${runs}×)` : ""), duration(seconds * row.slowdown)]);
  const rest = computing - d3.sum(timed, ([, , seconds]) => seconds) * row.slowdown;
  if (rest > 1e-3 * computing) rows.push(["other kernels", duration(rest)]);
  const waiting = slot.end - slot.begin - computing;
  if (slot.operations.length > 0 && waiting > 1e-3 * (slot.end - slot.begin))
    rows.push(["communication and waiting", duration(waiting)]);
  return rows;
}

/** Width in pixels from which a slot shows its parts. */
const widthForParts = 90;

function partColour(part) {
  return part.name.startsWith("nccl:") ? "communication" : /^(wait|bubble)/.test(part.name) ? "waiting" : "";
}

/** Index of the first slot that ends after a time. */
function slotAfter(row, time) {
  return d3.bisector((slot) => slot.end).right(row.slots, time);
}

class Timeline {
  constructor() {
    this.rows = timelineRows();
    this.box = byId("timeline-chart");
    this.canvas = this.box.querySelector("canvas");
    this.left = 68;
    this.rowHeight = Math.max(9, Math.min(36, 400 / this.rows.length));
    this.transform = d3.zoomIdentity;
    this.selected = null;
    this.partLists = new Map();
    this.zoom = d3.zoom().scaleExtent([1, 20 * Math.max(...this.rows.map((row) => row.slots.length))])
        .filter(() => this.takesEvent(d3.event)).on("zoom", () => this.zoomed());
    d3.select(this.box).call(this.zoom).on("dblclick.zoom", null);
    this.listen();
    drawn(() => this.draw());
  }

  /** The wheel belongs to the page until the chart has been clicked. */
  takesEvent(event) {
    if (event.button) return false;
    return event.type !== "wheel" || event.ctrlKey || event.metaKey || document.activeElement === this.box;
  }

  get width() { return this.box.clientWidth; }
  get plotHeight() { return this.rowHeight * this.rows.length; }

  scale() {
    return this.transform.rescaleX(d3.scaleLinear().domain([0, step]).range([this.left, this.width - 4]));
  }

  zoomed() {
    this.transform = d3.event.transform;
    tooltip.hide();
    this.draw();
  }

  draw() {
    const ratio = Math.max(2, window.devicePixelRatio || 1);
    const height = this.plotHeight + 26;
    this.zoom.extent([[this.left, 0], [this.width - 4, height]])
        .translateExtent([[this.left, 0], [this.width - 4, height]]);
    this.canvas.width = this.width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.height = height + "px";
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    const scale = this.scale();
    this.drawGrid(pen, scale);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.width - this.left, height);
    pen.clip();
    this.rows.forEach((row, index) => this.drawRow(pen, scale, row, index));
    this.drawSelection(pen, scale);
    pen.restore();
    this.drawNames(pen);
    this.drawTicks(pen, scale);
    const [from, to] = scale.domain();
    Object.assign(this.box.dataset, {from, to});
  }

  get mostTicks() { return this.width / 110; }

  drawGrid(pen, scale) {
    pen.fillStyle = colour("line");
    for (const tick of scale.ticks(this.mostTicks)) pen.fillRect(Math.round(scale(tick)), 0, 1, this.plotHeight + 4);
  }

  drawTicks(pen, scale) {
    const [from, to] = scale.domain();
    const [unit, name] = timeUnit(to - from);
    const inUnit = d3.scaleLinear().domain([from / unit, to / unit]);
    pen.textAlign = "center";
    pen.fillStyle = colour("muted");
    for (const tick of scale.ticks(this.mostTicks)) {
      const text = inUnit.tickFormat(this.mostTicks)(tick / unit).replace(/,/g, "\u202f") + " " + name;
      const half = pen.measureText(text).width / 2;
      pen.fillText(text, Math.max(half, Math.min(scale(tick), this.width - half)), this.plotHeight + 15);
    }
  }

  /** Forward slots are a little lower than backward ones, so that the two differ without their colours. */
  drawRow(pen, scale, row, index) {
    const [from, to] = scale.domain();
    const height = this.rowHeight - Math.max(2, this.rowHeight / 10);
    const top = index * this.rowHeight;
    const fill = {};
    for (const kind of Object.keys(slotColours)) fill[kind] = colour(slotColours[kind]);
    const onBar = colour("on-bar");
    const back = colour("background");
    for (let i = slotAfter(row, from); i < row.slots.length && row.slots[i].begin < to; ++i) {
      const slot = row.slots[i];
      const x = Math.max(this.left - 1, scale(slot.begin));
      const width = Math.min(this.width, scale(slot.end)) - x;
      const parts = scale(slot.end) - scale(slot.begin) > widthForParts && height > 24 ? this.partsOf(slot) : null;
      const lower = slot.kind === "A" ? height * 0.4 : slot.kind === "B" ? 0 : parts === null ? height * 0.22 : 3;
      pen.fillStyle = fill[slot.kind];
      pen.fillRect(x, top + lower, Math.max(0.5, width), height - lower);
      // A line in the background's colour keeps neighbours apart once there is room for it.
      if (width > 4) {
        pen.fillStyle = back;
        pen.fillRect(x, top, 1, height);
      }
      if (parts !== null) this.drawParts(pen, scale, slot, parts, top + height / 2, height / 2);
      const middle = parts === null ? (height + lower) / 2 : lower + (height / 2 - lower) / 2;
      if (width > 16 && height > 12 && slot.kind !== "A") this.drawText(pen, slot, x, width, top + middle, onBar);
    }
  }

  partsOf(slot) {
    if (!this.partLists.has(slot.parts)) this.partLists.set(slot.parts, slotParts(slot.parts));
    return this.partLists.get(slot.parts);
  }

  /** The parts of a slot in the lower half of its bar. */
  drawParts(pen, scale, slot, parts, top, height) {
    const own = colour(slotColours[slot.kind]);
    const back = colour("background");
    pen.textAlign = "center";
    for (const part of parts) {
      const from = Math.max(this.left, scale(slot.begin + part.begin));
      const to = Math.min(this.width, scale(slot.begin + part.end));
      if (to <= from) continue;
      const kind = partColour(part);
      pen.fillStyle = back;
      pen.fillRect(from, top, to - from, height);
      pen.fillStyle = kind === "" ? own : colour(kind);
      pen.fillRect(from + (to - from > 3 ? 1 : 0), top + 1, Math.max(0.5, to - from - (to - from > 3 ? 1 : 0)), height - 1);
      if (to - from < 24 || pen.measureText(part.name).width > to - from - 6) continue;
      pen.fillStyle = kind === "waiting" ? colour("text") : colour("on-bar");
      pen.fillText(part.name, (from + to) / 2, top + height / 2 + 1);
    }
  }

  drawText(pen, slot, x, width, y, onBar) {
    const texts = [`${slot.kind}${slot.micro}`];
    if (result.plan.virtual_pipeline > 1) texts.unshift(`${slot.kind}${slot.micro}, chunk ${slot.chunk}`);
    const text = texts.find((each) => pen.measureText(each).width < width - 6);
    if (text === undefined) return;
    pen.textAlign = "center";
    pen.fillStyle = onBar;
    pen.fillText(text, x + width / 2, y);
  }

  drawNames(pen) {
    pen.fillStyle = colour("background");
    pen.fillRect(0, 0, this.left, this.plotHeight + 26);
    pen.fillStyle = colour("muted");
    pen.textAlign = "left";
    const every = Math.ceil(14 / this.rowHeight);
    const stages = new Set(this.rows.map((row) => row.stage));
    this.rows.forEach((row, index) => {
      if (index % every > 0) return;
      const text = stages.size === this.rows.length ? `stage ${row.stage}` : `rank ${row.rank}`;
      pen.fillText(text, 0, (index + 0.5) * this.rowHeight - 1);
    });
  }

  drawSelection(pen, scale) {
    if (this.selected === null) return;
    const {row, slot} = this.selected;
    const x = scale(slot.begin);
    pen.strokeStyle = colour("text");
    pen.lineWidth = 2;
    pen.strokeRect(x, this.rows.indexOf(row) * this.rowHeight, Math.max(2, scale(slot.end) - x), this.rowHeight - 2);
  }

  /** The slot below a point of the chart, if there is one. */
  slotAt(x, y) {
    const row = this.rows[Math.floor(y / this.rowHeight)];
    if (row === undefined || x < this.left) return null;
    const time = this.scale().invert(x);
    const slot = row.slots[slotAfter(row, time)];
    return slot !== undefined && slot.begin <= time ? {row, slot} : null;
  }

  select(found) {
    this.selected = found;
    const {row, slot} = found;
    const operations = slotOperations(row, slot, 3).map(([name, time]) => `${time} ${name}`).join(", ");
    byId("timeline-selected").textContent =
        `${slotTitle(slot)}: ${slotWhen(row, slot)}.` + (operations === "" ? "" : ` In it: ${operations}.`);
    this.reveal(slot);
    this.draw();
  }

  /** Moves the view so that a slot is in it. */
  reveal(slot) {
    const [from, to] = this.scale().domain();
    if (slot.begin >= from && slot.end <= to) return;
    const scale = d3.scaleLinear().domain([0, step]).range([this.left, this.width - 4]);
    d3.select(this.box).call(this.zoom.translateTo, scale((slot.begin + slot.end) / 2), 0);
  }

  /** Zooms about the selected slot, or the middle. */
  scaleBy(factor) {
    const scale = this.scale();
    const middle = (this.left + this.width) / 2;
    const at = this.selected === null ? middle : scale((this.selected.slot.begin + this.selected.slot.end) / 2);
    const inside = at >= this.left && at <= this.width;
    d3.select(this.box).call(this.zoom.scaleBy, factor, [inside ? at : middle, 0]);
  }

  panBy(share) {
    d3.select(this.box).call(this.zoom.translateBy, -share * (this.width - this.left) / this.transform.k, 0);
  }

  reset() {
    d3.select(this.box).call(this.zoom.transform, d3.zoomIdentity);
  }

  moveTo(rowIndex, slotIndex) {
    const row = this.rows[Math.max(0, Math.min(this.rows.length - 1, rowIndex))];
    this.select({row, slot: row.slots[Math.max(0, Math.min(row.slots.length - 1, slotIndex))]});
  }

  /** From slot to slot; in another row to the one at the same time. */
  step(along, across) {
    if (this.selected === null) return this.moveTo(0, 0);
    const index = this.rows.indexOf(this.selected.row);
    if (along !== 0) return this.moveTo(index, this.selected.row.slots.indexOf(this.selected.slot) + along);
    const next = this.rows[Math.max(0, Math.min(this.rows.length - 1, index + across))];
    return this.moveTo(index + across, slotAfter(next, (this.selected.slot.begin + this.selected.slot.end) / 2));
  }

  /** What a key does; nothing for keys that belong to the page. */
  action(key) {
    const index = this.selected === null ? 0 : this.rows.indexOf(this.selected.row);
    return {
      ArrowLeft: () => this.step(-1, 0),
      ArrowRight: () => this.step(1, 0),
      ArrowUp: () => this.step(0, -1),
      ArrowDown: () => this.step(0, 1),
      Home: () => this.moveTo(index, 0),
      End: () => this.moveTo(index, Infinity),
      "+": () => this.scaleBy(2),
      "=": () => this.scaleBy(2),
      "-": () => this.scaleBy(0.5),
      0: () => this.reset(),
    }[key];
  }

  listen() {
    this.box.addEventListener("keydown", (event) => {
      const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : this.action(event.key);
      if (action === undefined) return;
      event.preventDefault();
      action();
    });
    this.box.addEventListener("mousemove", (event) => this.hover(event));
    this.box.addEventListener("mouseleave", () => tooltip.hide());
    this.box.addEventListener("click", (event) => {
      this.box.focus({preventScroll: true});
      const found = this.slotAt(...d3.clientPoint(this.box, event));
      if (found !== null) this.select(found);
    });
    this.box.addEventListener("focus", () => {
      if (this.selected === null && this.box.matches(":focus-visible")) this.moveTo(0, 0);
    });
    byId("zoom-in").addEventListener("click", () => this.scaleBy(2));
    byId("zoom-out").addEventListener("click", () => this.scaleBy(0.5));
    byId("pan-left").addEventListener("click", () => this.panBy(-0.5));
    byId("pan-right").addEventListener("click", () => this.panBy(0.5));
    byId("zoom-reset").addEventListener("click", () => this.reset());
  }

  /** The part of a slot at a point, if parts are shown there. */
  partAt(slot, x) {
    const scale = this.scale();
    if (scale(slot.end) - scale(slot.begin) <= widthForParts) return undefined;
    const after = scale.invert(x) - slot.begin;
    return (this.partsOf(slot) || []).find((part) => part.begin <= after && after < part.end);
  }

  hover(event) {
    const [x, y] = d3.clientPoint(this.box, event);
    const found = this.slotAt(x, y);
    if (found === null) return tooltip.hide();
    const part = this.partAt(found.slot, x);
    if (part !== undefined) {
      return tooltip.show(event.pageX, event.pageY, make("strong", {}, `${part.name}: ${duration(part.end - part.begin)}`),
          `from ${duration(found.slot.begin + part.begin)}, in the ${slotTitle(found.slot).toLowerCase()}; ` +
          slotWhen(found.row, found.slot));
    }
    const operations = slotOperations(found.row, found.slot, 6).map(([name, time]) =>
        make("tr", {}, make("td", {}, name), make("td", {class: "number"}, time)));
    tooltip.show(event.pageX, event.pageY, make("strong", {}, slotTitle(found.slot)), slotWhen(found.row, found.slot),
        operations.length === 0 ? "" : make("table", {}, make("tbody", {}, operations)));
  }
}

/** The table of one row's slots, made when it is wanted. */
function showSlotTable(rows) {
  const select = byId("timeline-row");
  rows.forEach((row, index) => select.append(make("option", {value: index}, rankLabel(row))));
  const fill = () => {
    const row = rows[select.value];
    byId("timeline-table").replaceChildren(table(`Slots of stage ${row.stage} in the order in which they ran`, [
      {title: "Slot", cell: slotTitle},
      {title: "Begins", number: true, cell: (slot) => duration(slot.begin)},
      {title: "Ends", number: true, cell: (slot) => duration(slot.end)},
      {title: "Takes", number: true, cell: (slot) => duration(slot.end - slot.begin)},
    ], row.slots));
  };
  select.addEventListener("change", fill);
  byId("timeline-details").addEventListener("toggle", () => {
    if (byId("timeline-details").open && byId("timeline-table").childElementCount === 0) fill();
  });
}

function timelineLead(shown) {
  const {simulated_ranks: ranks, stages} = data.timeline;
  const rows = shown < ranks && ranks === stages
      ? `${shown} of ${stages} stages are shown, so that the file stays small.`
      : shown < ranks ? `${shown} of ${ranks} simulated ranks are shown, the busiest of its stage each.` : "";
  return "When each stage ran the forward and backward passes of which micro-batch. Gaps are time in which a stage " +
      "had nothing to do or waited for a transfer. " + rows;
}

function showTimeline() {
  if (data.timeline.rows.length === 0) {
    byId("timeline-lead").textContent = "The step has too many slots to show them in a file of reasonable size.";
    for (const id of ["timeline-controls", "timeline-chart", "timeline-help", "timeline-selected", "timeline-details"])
      byId(id).remove();
    return;
  }
  const timeline = new Timeline();
  byId("timeline-lead").textContent = timelineLead(timeline.rows.length);
  const kinds = new Set(timeline.rows.flatMap((row) => row.slots.map((slot) => slot.kind)));
  legend("timeline-legend", Object.keys(slotNames).filter((kind) => kinds.has(kind)).map((kind) =>
      [slotColours[kind], kind === "A" ? slotNames[kind] : `${slotNames[kind]} (${kind})`])
      .concat(data.timeline.parts.lists.length === 0 ? [] : [["communication", "Transfer"], ["waiting", "Wait"]]));
  showSlotTable(timeline.rows);
}

// Opens a report in Chromium as a reader would, and fails if anything is wrong with it.
//
// usage: node look.mjs REPORT.html FOLDER_FOR_SCREENSHOTS
import fs from "node:fs";
import path from "node:path";
import {pathToFileURL} from "node:url";
import axe from "axe-core";
import puppeteer from "puppeteer-core";

const [report, folder] = process.argv.slice(2);
const chromium = process.env.CHROMIUM || "/usr/bin/chromium";
const problems = [];

function expect(holds, text) {
  if (!holds) problems.push(text);
}

/** Everything that the page says when it should be silent, and every request but that for the file itself. */
function listen(page, url) {
  page.on("console", (message) => problems.push(`console: ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => problems.push(`script error: ${error.message}`));
  page.on("dialog", (dialog) => {
    problems.push(`a dialog opened: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => expect(request.url() === url, `asked for ${request.url()}`));
}

const domain = (page) => page.$eval("#timeline-chart", (box) => [Number(box.dataset.from), Number(box.dataset.to)]);

async function zooms(page) {
  const width = async () => {
    const [from, to] = await domain(page);
    return to - from;
  };
  const whole = await width();
  await page.click("#zoom-in");
  const button = await width();
  expect(button < 0.6 * whole, `the button zooms in: ${whole} s became ${button} s`);
  await page.click("#zoom-reset");
  expect(await width() === whole, "the whole step can be shown again");

  const box = await (await page.$("#timeline-chart")).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 10);
  const scrolled = await page.evaluate(() => window.scrollY);
  await page.mouse.wheel({deltaY: 100});
  await page.waitForFunction((before) => window.scrollY > before, {}, scrolled);
  expect(await width() === whole, "the wheel scrolls the page until the chart is clicked");
  await page.evaluate((y) => window.scrollTo({top: y, behavior: "instant"}), scrolled);

  await page.mouse.click(box.x + box.width / 2, box.y + 10);
  await page.mouse.wheel({deltaY: -400});
  await page.waitForFunction((before) => {
    const {from, to} = document.getElementById("timeline-chart").dataset;
    return to - from < before;
  }, {timeout: 5000}, 0.9 * whole).catch(() => problems.push("the wheel does not zoom a chart that was clicked"));
  const before = await width();
  await page.keyboard.press("+");
  expect(await width() < 0.6 * before, "the + key zooms in");
  const [from] = await domain(page);
  await page.click("#pan-right");
  expect((await domain(page))[0] > from, "the button moves to later");
  await page.focus("#timeline-chart");
  await page.keyboard.press("0");
  expect(await width() === whole, "the 0 key shows the whole step");
}

/**
 * The slot of the first row in the middle of the view: where the longest part of it in view is on the screen, and what the
 * page must say of it, all from the embedded numbers.
 */
async function middleSlot(page) {
  return page.evaluate(() => {
    const data = JSON.parse(document.getElementById("data").textContent);
    const row = data.timeline.rows[0];
    const tick = data.result.step_time_s / data.timeline.ticks_per_step;
    const {from, to} = document.getElementById("timeline-chart").dataset;
    const middle = (Number(from) + Number(to)) / 2 / tick;
    const i = Math.max(0, row.begins.findIndex((begin, k) => begin + row.durations[k] > middle));
    const {names, lists} = data.timeline.parts;
    const list = row.parts[i] < 0 ? [] : lists[row.parts[i]];
    let part = {name: "", begin: 0, duration: row.durations[i]};
    const shown = (time) => (row.begins[i] + time) * tick > Number(from) && (row.begins[i] + time) * tick < Number(to);
    for (let k = 0; k < list.length; k += 3) {
      const longer = part.name === "" || list[k + 2] > part.duration;
      if (longer && shown(list[k + 1] + list[k + 2] / 2))
        part = {name: names[list[k]], begin: list[k + 1], duration: list[k + 2]};
    }
    const box = document.querySelector("#timeline-chart canvas").getBoundingClientRect();
    const left = 68;
    const scale = (time) => box.left + left + (time * tick - from) / (to - from) * (box.width - left - 4);
    return {
      x: scale(row.begins[i] + part.begin + part.duration / 2), y: box.top + 14,
      width: scale(row.begins[i] + row.durations[i]) - scale(row.begins[i]), part: part.name,
      title: {F: "Forward", B: "Backward", W: "Weight gradient"}[row.kinds[i]] + " of micro-batch " + row.micro_batches[i],
      stage: "stage " + row.stage, operation: data.timeline.operations[row.operations[i]][0][0],
    };
  });
}

/** Zooms in until the slot in the middle has at least a width, hovers it, and returns it with what the page says. */
async function hoverOne(page, width) {
  await page.focus("#timeline-chart");
  let slot = await middleSlot(page);
  for (let i = 0; i < 30 && slot.width < width; ++i) {
    await page.keyboard.press("+");
    slot = await middleSlot(page);
  }
  // Where it is already, a pointer that is moved tells the page nothing.
  await page.mouse.move(0, 0);
  await page.mouse.move(slot.x, slot.y);
  await page.waitForFunction(() => !document.querySelector("#tooltip").hidden, {timeout: 5000}).catch(() => {});
  return [slot, await page.$eval("#tooltip", (box) => box.hidden ? "" : box.textContent)];
}

/** Hovering shows the slot and its kernels; close up, the kernel or transfer below the pointer. */
async function hovers(page) {
  await page.reload();
  await page.waitForFunction(() => document.documentElement.dataset.ready === "true");
  await page.$eval("#timeline-chart", (box) => box.scrollIntoView({block: "center", behavior: "instant"}));
  const [slot, shown] = await hoverOne(page, 20);
  const wanted = slot.width > 90 && slot.part !== "" ? [slot.part, slot.title.toLowerCase(), slot.stage]
      : [slot.title, slot.stage, slot.operation];
  for (const text of wanted) expect(shown.includes(text), `hovering a slot shows '${text}': '${shown}'`);
  const [close, detail] = await hoverOne(page, 400);
  // Where the middle of the step lies between two slots, zooming in there leaves nothing to hover.
  if (close.part === "") return;
  expect(detail.startsWith(close.part), `close up, hovering shows '${close.part}': '${detail}'`);
  await page.screenshot({path: path.join(folder, "close-up.png")});
  await page.mouse.move(1, 1);
  expect(await page.$eval("#tooltip", (box) => box.hidden), "the tooltip goes away");
  await page.keyboard.press("0");
}

const embedded = (page) => page.$eval("#data", (node) => JSON.parse(node.textContent));

/** What the page says with blanks of one kind. */
const textOf = (page, selector) => page.$eval(selector, (node) => node.textContent.replace(/\s+/g, " "));

/** Sections of what a run may have or not: there with a link to them if it has, else neither. */
async function parts(page) {
  const {page: kind, result, what_if: whatIf} = await embedded(page);
  if (kind !== "run") return;
  const wanted = {"whole-run": result.run, "jitter": result.jitter, "uncertainty": result.uncertainty,
    "sensitivity": result.sensitivity, "what-if": whatIf.length > 0 ? whatIf : null, "placement": result.placement};
  for (const [id, value] of Object.entries(wanted)) {
    const has = value !== null && value !== undefined;
    expect((await page.$(`main > #${id}`) !== null) === has, `the section #${id} is ${has ? "there" : "left out"}`);
    expect((await page.$(`nav a[href='#${id}']`) !== null) === has, `the link to #${id} is ${has ? "there" : "left out"}`);
  }
}

/** The whole run: headline numbers, where the time goes, and the interval between checkpoints beside the best ones. */
async function wholeRun(page) {
  const {run} = (await embedded(page)).result;
  const numbers = await textOf(page, "#run-numbers");
  for (const text of [(run.wall_s / 86400).toPrecision(3) + " days", (100 * run.goodput).toFixed(1) + " %",
    run.cost.currency, (run.energy.energy_kwh / 1000).toPrecision(4) + " MWh", (run.energy.co2_kg / 1000).toPrecision(4) + " t"])
    expect(numbers.includes(text), `the headline numbers of the run have '${text}': '${numbers}'`);
  const bars = await page.$$eval("#run-time tbody tr", (rows) => rows.map((row) => row.cells[0].firstChild.textContent));
  const all = ["Steps, if all had the full batch", "Batch ramp", "Steps", "Checkpoints", "Steps done again", "Restarts", "Whole run"];
  expect(bars.join() === all.join(), `the run is made of ${all}: ${bars}`);
  const shares = await page.$$eval("#run-time tbody tr", (rows) => rows.map((row) => parseFloat(row.cells[3].textContent)));
  // Of the run in percent; each is rounded to a tenth.
  expect(Math.abs(shares[2] + shares[3] + shares[4] + shares[5] - shares[6]) < 0.3, `parts of the run add up: ${shares}`);
  const intervals = await page.$$eval("#run-intervals tbody tr", (rows) => rows.map((row) => row.cells[1].textContent));
  const minutes = [run.checkpoint.interval_s, run.failures.daly_interval_s, run.failures.young_interval_s]
      .map((seconds) => (seconds / 60).toPrecision(3) + "\u00a0min");
  expect(intervals.join() === minutes.join(), `the interval is ${minutes}: ${intervals}`);
  expect(await page.$$eval("#run-batches tbody tr", (rows) => rows.length) === run.stages.length, "every size of the batch has a row");
}

/** Step times as the page writes them, such as those of the rows of a table. */
const seconds = (value) => value >= 1 ? value.toPrecision(4) + "\u00a0s" : (1000 * value).toPrecision(4) + "\u00a0ms";
const cells = (page, table, column) => page.$$eval(`${table} tbody tr`, (rows, index) =>
    rows.map((row) => row.cells[index].firstChild?.textContent ?? ""), column);

/** How sure the step time is: the interval in the first row, and below it the constants that move the step. */
async function uncertainty(page) {
  const {uncertainty: found, step_time_s: step} = (await embedded(page)).result;
  const spread = ({step_time_at_low_s: low, step_time_at_high_s: high}) => Math.max(step, low, high) - Math.min(step, low, high);
  const rows = found.constants.filter((constant) => spread(constant) >= 0.005 * step);
  expect(rows.length > 0, "some constants move the step");
  const low = [found.step_time_low_s, ...rows.map((row) => row.step_time_at_low_s)].map(seconds);
  const shown = await cells(page, "#uncertainty-table", 5);
  expect(shown.join() === low.join(), `step times at the low ends are ${low}: ${shown}`);
  const lead = await textOf(page, "#uncertainty-lead");
  expect(lead.includes("90 % of 10 samples"), `the interval says what it is: '${lead}'`);
}

/** What the step is bound by: a row for everything that was made better, and the sentences. */
async function sensitivity(page) {
  const {rows, sentences} = (await embedded(page)).result.sensitivity;
  const shown = await cells(page, "#sensitivity-table", 1);
  expect(shown.join() === rows.map((row) => seconds(row.step_time_s)).join(), `every part has its step time: ${shown}`);
  const said = await page.$$eval("#sensitivity-sentences p", (nodes) => nodes.map((node) => node.textContent));
  expect(said.join() === sentences.join(), `what the step is bound by: ${said}`);
}

/** Changes that were asked for: what each is of the run, its reasons, and tables that can be unfolded. */
async function whatIfs(page) {
  const {result, what_if: answers} = await embedded(page);
  const shown = await cells(page, "#what-if-table", 1);
  const times = [result, ...answers.map((answer) => answer.result)].map((each) => seconds(each.step_time_s));
  expect(shown.join() === times.join(), `step times are ${times}: ${shown}`);
  const text = await page.$eval("#what-if", (node) => node.textContent);
  for (const {change, difference, inputs} of answers) {
    for (const part of [change, ...difference.sentences, ...inputs.map((input) => input.key)])
      expect(text.includes(part), `the change ${change} says '${part}'`);
  }
  const last = await page.$$eval("#what-if-moves details table:first-of-type", (tables) =>
      tables.map((table) => table.tBodies[0].lastChild.cells[0].textContent));
  expect(last.join() === answers.map((answer) => answer.difference.to).join(), `each change has its waterfall: ${last}`);
}

/** Other placements: the run as it is, then each with its reason. */
async function placements(page) {
  const {placement, step_time_s: step} = (await embedded(page)).result;
  const times = [step, ...placement.rows.map((row) => row.step_time_s)].map(seconds);
  const shown = await cells(page, "#placement-table", 1);
  expect(placement.rows.length > 0 && shown.join() === times.join(), `step times are ${times}: ${shown}`);
  const why = await cells(page, "#placement-table", 3);
  expect(why.slice(1).join() === placement.rows.map((row) => row.why).join(), `every placement says why: ${why}`);
}

/** Steps with jitter: what half, 90 % and 99 % of them stay within. */
async function jitter(page) {
  const found = (await embedded(page)).result.jitter;
  const shown = await page.$$eval("#jitter-numbers .value", (nodes) => nodes.map((node) => node.textContent));
  const wanted = [found.mean_s, found.p50_s, found.p90_s, found.p99_s].map(seconds);
  expect(shown.join() === wanted.join(), `step times with jitter are ${wanted}: ${shown}`);
}

/** The keyboard reaches every control. */
async function reachable(page) {
  await page.evaluate(() => {
    document.activeElement.blur();
    window.scrollTo(0, 0);
  });
  const controls = "a[href], button, select, summary, [tabindex='0']";
  const wanted = await page.$$eval(controls, (nodes) => nodes.filter((node) => node.checkVisibility()).length);
  const seen = await page.evaluateHandle(() => new Set());
  for (let i = 0; i < wanted + 2; ++i) {
    await page.keyboard.press("Tab");
    await page.evaluate((set) => set.add(document.activeElement), seen);
  }
  const missed = await page.evaluate((set, all) => [...document.querySelectorAll(all)]
      .filter((node) => node.checkVisibility() && !set.has(node)).map((node) => node.id || node.textContent), seen, controls);
  expect(missed.length === 0, `Tab does not reach ${missed}`);
}

/** Keys move through the slots, and read the memory curve. */
async function keyboard(page) {
  await page.focus("#timeline-chart");
  const said = () => page.$eval("#timeline-selected", (node) => node.textContent);
  await page.keyboard.press("Home");
  const first = await said();
  expect(/ of micro-batch 0/.test(first), `Home selects the first slot: '${first}'`);
  await page.keyboard.press("ArrowRight");
  expect(await said() !== first, "the right key goes to the next slot");
  await page.focus("#memory-chart");
  await page.keyboard.press("p");
  expect(/GiB|MiB/.test(await page.$eval("#memory-selected", (node) => node.textContent)), "P reads the peak");
}

/** What the tooltip says when the pointer is in the middle of an element. */
async function tipOf(page, selector) {
  await page.mouse.move(0, 0);
  await page.$eval(selector, (node) => node.scrollIntoView({block: "center", behavior: "instant"}));
  const box = await (await page.$(selector)).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  return page.$eval("#tooltip", (tip) => tip.hidden ? "" : tip.textContent);
}

/** Charts of a sweep: pointing at one names the point, and keys go from value to value. */
async function curves(page) {
  const shown = await tipOf(page, ".curves figure .chart");
  expect(/Step time.*Peak memory/.test(shown) || /not legal/.test(shown), `a chart names the point below the pointer: '${shown}'`);
  await page.focus(".curves");
  const said = () => page.$eval(".curves + .selected", (node) => node.textContent);
  await page.keyboard.press("Home");
  const first = await said();
  await page.keyboard.press("ArrowRight");
  expect(first !== "" && await said() !== first, `the right key goes to the next value: '${first}'`);
}

/** The map: every cell has its reason or its numbers, and another number can be shown. */
async function map(page) {
  for (const kind of ["illegal", "misfit", "best"]) {
    const cell = `#map td.${kind}`;
    if (await page.$(cell) === null) continue;
    const shown = await tipOf(page, cell);
    const wanted = {illegal: "not legal", misfit: "does not fit", best: "Step time"}[kind];
    expect(shown.includes(wanted), `a cell that is ${kind} says '${wanted}': '${shown}'`);
  }
  await page.focus("#map td[tabindex='0']");
  await page.keyboard.press("ArrowRight");
  const focused = await page.evaluate(() => [document.activeElement.dataset.row, document.activeElement.dataset.column,
    document.getElementById("map-selected").textContent === document.activeElement.getAttribute("aria-label")]);
  expect(focused.join() === "0,1,true", `the right key goes to the next cell and reads it: ${focused}`);
  const cells = () => page.$$eval("#map td", (nodes) => nodes.map((node) => node.textContent).join());
  const before = await cells();
  await page.select("#map-controls select", "step_time_s");
  expect(await cells() !== before, "the map shows the number that was chosen");
}

/** The front of a sweep or a search: keys go along it. */
async function front(page) {
  await page.focus("#memory-front .chart");
  await page.keyboard.press("Home");
  const said = await page.$eval("#memory-front .selected", (node) => node.textContent);
  expect(/^1: .*(GiB|MiB)/.test(said), `Home reads the first point of the line: '${said}'`);
}

/** Rows are in the order of the first column; a click on its head turns them around, and another one back. */
async function sorts(page, table) {
  const state = () => page.$eval(`${table} thead th`, (node) => node.getAttribute("aria-sort"));
  const cells = () => page.$$eval(`${table} tbody tr`, (rows) => rows.map((row) => row.cells[0].textContent));
  const before = await cells();
  for (const order of ["descending", "ascending"]) {
    await page.click(`${table} thead th button`);
    expect(await state() === order, `a head that is clicked sorts ${order}`);
    // What has no number stays last.
    const numbers = before.filter((text) => /^[0-9]/.test(text));
    const wanted = (order === "ascending" ? numbers : [...numbers].reverse()).concat(before.slice(numbers.length));
    expect(wanted.join() === (await cells()).join(), `rows are in ${order} order: ${await cells()}`);
  }
}

async function tables(page) {
  await page.$eval("#timeline-details summary", (node) => node.click());
  await page.waitForSelector("#timeline-table tbody tr");
  const [rows, slots] = await page.evaluate(() => [document.querySelectorAll("#timeline-table tbody tr").length,
    JSON.parse(document.getElementById("data").textContent).timeline.rows[0].kinds.length]);
  expect(rows >= slots, `the table of slots has ${rows} rows for ${slots} slots`);
  await page.$eval("#timeline-details summary", (node) => node.click());
}

/** Serious and critical findings of axe-core. */
async function accessible(page, scheme) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => window.axe.run(document, {resultTypes: ["violations"]}));
  for (const violation of found.violations) {
    if (!["serious", "critical"].includes(violation.impact)) continue;
    const where = violation.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + (node.any[0]?.message || ""));
    problems.push(`axe, ${scheme}: ${violation.id} (${violation.impact}): ${violation.help}: ${where.join("; ")}`);
  }
}

async function fits(page, width) {
  await page.setViewport({width, height: 900});
  await page.evaluate(() => new Promise(requestAnimationFrame));
  const wide = await page.evaluate(() => {
    const limit = document.documentElement.clientWidth;
    return document.documentElement.scrollWidth <= limit ? [] : [...document.querySelectorAll("main *")]
        .filter((node) => node.getBoundingClientRect().right > limit + 1).slice(0, 5).map((node) => node.tagName + "#" + node.id);
  });
  expect(wide.length === 0, `at ${width} pixels the page is too wide: ${wide}`);
}

async function picture(page, name) {
  await page.screenshot({path: path.join(folder, name), fullPage: true});
}

/** On paper everything is light, and what is folded is open. */
async function paper(page) {
  await page.emulateMediaType("print");
  await page.evaluate(() => new Promise(requestAnimationFrame));
  const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  expect(background === "rgb(255, 255, 255)", `paper is white: ${background}`);
  const folded = await page.$$eval("details:not(#timeline-details)", (nodes) => nodes.filter((node) => !node.open).length);
  expect(folded === 0, `${folded} folded parts are not open on paper`);
  // The width of A4 between its margins, in CSS pixels.
  await fits(page, 680);
  await page.setViewport({width: 1440, height: 900});
  await page.emulateMediaType("screen");
  const pdf = await page.pdf({path: path.join(folder, "report.pdf"), format: "A4",
    margin: {top: "15mm", bottom: "15mm", left: "15mm", right: "15mm"}});
  expect(pdf.length > 10000, "the page can be printed");
}

const browser = await puppeteer.launch({executablePath: chromium, args: ["--no-sandbox", "--disable-dev-shm-usage"]});
try {
  fs.mkdirSync(folder, {recursive: true});
  const page = await browser.newPage();
  const url = pathToFileURL(path.resolve(report)).href;
  listen(page, url);
  await page.setViewport({width: 1440, height: 900});
  await page.emulateMediaFeatures([{name: "prefers-color-scheme", value: "light"}, {name: "prefers-reduced-motion", value: "reduce"}]);
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.ready === "true", {timeout: 20000});
  const title = await page.evaluate(() => [document.getElementById("name").textContent,
    JSON.parse(document.getElementById("data").textContent).name, typeof window.hacked]);
  expect(title[0] === title[1], `the heading is the name: ${title}`);
  expect(title[2] === "undefined", "text of the configuration was run as a script");
  for (const scheme of ["light", "dark"]) {
    await page.emulateMediaFeatures([{name: "prefers-color-scheme", value: scheme}, {name: "prefers-reduced-motion", value: "reduce"}]);
    await accessible(page, scheme);
    for (const width of [1440, 800]) {
      await fits(page, width);
      await picture(page, `${scheme}-${width}.png`);
    }
    await page.setViewport({width: 1440, height: 900});
  }
  await reachable(page);
  await parts(page);
  const checks = {"#whole-run": [wholeRun], "#uncertainty": [uncertainty], "#sensitivity": [sensitivity], "#what-if": [whatIfs],
    "#placement": [placements], "#jitter": [jitter], "#timeline-chart": [zooms, hovers, keyboard, tables], ".curves": [curves], "#map": [map],
    "#memory-front .chart": [front], "#points-table": [(on) => sorts(on, "#points-table")],
    "#settings-table": [(on) => sorts(on, "#settings-table")]};
  for (const [part, list] of Object.entries(checks)) {
    if (await page.$(part) === null) continue;
    for (const check of list) await check(page);
  }
  await paper(page);
} finally {
  await browser.close();
}
console.log(problems.length > 0 ? problems.join("\n") : "the report works in Chromium");
process.exitCode = problems.length > 0 ? 1 : 0;

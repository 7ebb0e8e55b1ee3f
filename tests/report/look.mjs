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

/** The middle of a slot of the first row, and what the page must say of it, from the embedded numbers. */
async function someSlot(page) {
  return page.evaluate(() => {
    const data = JSON.parse(document.getElementById("data").textContent);
    const row = data.timeline.rows[0];
    const i = row.begins.length >> 1;
    const step = data.result.step_time_s;
    const {from, to} = document.getElementById("timeline-chart").dataset;
    const middle = (row.begins[i] + row.durations[i] / 2) / data.timeline.ticks_per_step * step;
    const box = document.querySelector("#timeline-chart canvas").getBoundingClientRect();
    const left = 68;
    const {names, lists} = data.timeline.parts;
    const list = row.parts[i] < 0 ? [] : lists[row.parts[i]];
    let part = null;
    for (let k = 0; k < list.length; k += 3)
      if (list[k + 1] <= row.durations[i] / 2 && row.durations[i] / 2 < list[k + 1] + list[k + 2]) part = names[list[k]];
    return {
      part, seconds: row.durations[i] / data.timeline.ticks_per_step * step,
      x: box.left + left + (middle - from) / (to - from) * (box.width - left - 4), y: box.top + 8,
      title: {F: "Forward", B: "Backward", W: "Weight gradient"}[row.kinds[i]] + " of micro-batch " + row.micro_batches[i],
      stage: "stage " + row.stage, operation: data.timeline.operations[row.operations[i]][0][0],
    };
  });
}

async function hovers(page) {
  await page.$eval("#timeline-chart", (box) => box.scrollIntoView({block: "center", behavior: "instant"}));
  const slot = await someSlot(page);
  await page.mouse.move(slot.x, slot.y);
  const shown = await page.$eval("#tooltip", (box) => box.hidden ? "" : box.textContent);
  for (const text of [slot.title, slot.stage, slot.operation])
    expect(shown.includes(text), `hovering a slot shows '${text}': '${shown}'`);
  await page.mouse.move(1, 1);
  expect(await page.$eval("#tooltip", (box) => box.hidden), "the tooltip goes away");
}

/** Close up, hovering shows the kernel or transfer below the pointer. */
async function showsParts(page) {
  const before = await someSlot(page);
  await page.mouse.click(before.x, before.y);
  for (let i = 0; i < 30; ++i) {
    const wide = await page.evaluate((seconds) => {
      const box = document.getElementById("timeline-chart");
      return seconds / (box.dataset.to - box.dataset.from) * box.clientWidth;
    }, before.seconds);
    if (wide > 400) break;
    await page.keyboard.press("+");
  }
  const slot = await someSlot(page);
  if (slot.part === null) return;
  await page.mouse.move(slot.x, slot.y);
  const shown = await page.$eval("#tooltip", (box) => box.hidden ? "" : box.textContent);
  expect(shown.startsWith(slot.part), `close up, hovering shows '${slot.part}': '${shown}'`);
  await page.screenshot({path: path.join(folder, "close-up.png")});
  await page.keyboard.press("0");
}

/** The keyboard reaches every control, and moves through the slots. */
async function keyboard(page) {
  await page.evaluate(() => {
    document.activeElement.blur();
    window.scrollTo(0, 0);
  });
  const wanted = await page.$$eval("a[href], button, select, summary, [tabindex='0']", (nodes) =>
      nodes.filter((node) => node.checkVisibility()).length);
  const seen = await page.evaluateHandle(() => new Set());
  for (let i = 0; i < wanted + 2; ++i) {
    await page.keyboard.press("Tab");
    await page.evaluate((set) => set.add(document.activeElement), seen);
  }
  const missed = await page.evaluate((set) => [...document.querySelectorAll("a[href], button, select, summary, [tabindex='0']")]
      .filter((node) => node.checkVisibility() && !set.has(node)).map((node) => node.id || node.textContent), seen);
  expect(missed.length === 0, `Tab does not reach ${missed}`);

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
  expect(await page.$eval("#defaults-details", (node) => node.open), "folded parts are open on paper");
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
    JSON.parse(document.getElementById("data").textContent).result.name, typeof window.hacked]);
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
  if (await page.$("#timeline-chart") !== null) {
    await zooms(page);
    await hovers(page);
    await showsParts(page);
    await keyboard(page);
    await tables(page);
  }
  await paper(page);
} finally {
  await browser.close();
}
console.log(problems.length > 0 ? problems.join("\n") : "the report works in Chromium");
process.exitCode = problems.length > 0 ? 1 : 0;

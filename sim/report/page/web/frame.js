// What stands around the sections of every page.

/** Terms and their texts in a list of descriptions. */
function describe(id, rows) {
  byId(id).append(...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

/** Headline numbers: name, value, and a note below it. */
function showNumbers(id, numbers) {
  byId(id).append(...numbers.map(([name, value, note]) => make("div", {}, make("dt", {}, name),
      make("dd", {}, make("div", {class: "value"}, value), make("div", {class: "note"}, note)))));
}

function showList(id, texts) {
  byId(id).append(...texts.map((text) => make("li", {}, text)));
}

/** Paragraphs that stand out: a title and a text each. */
function showWarnings(texts) {
  byId("warnings").append(...texts.map(([title, text]) =>
      make("p", {class: "warning"}, make("strong", {}, title), " ", text)));
}

/** What is wider than the page can be scrolled with the keyboard, even if nothing in it takes the focus. */
function focusScrolled() {
  for (const box of document.querySelectorAll(".scroll")) {
    if (box.querySelector("button, [tabindex='0']") !== null) continue;
    const wide = box.scrollWidth > box.clientWidth;
    const caption = box.querySelector("caption");
    for (const [name, value] of Object.entries({tabindex: "0", role: "region", "aria-label": caption ? caption.textContent : "Table"})) {
      if (wide) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
  }
}

/** Tables that are wider than A4 between its margins, 680 CSS pixels, are drawn smaller on paper. */
function fitOnPaper() {
  for (const table of document.querySelectorAll(".scroll table")) {
    table.style.width = "min-content";
    table.style.setProperty("--paper", Math.min(1, 680 / table.offsetWidth));
    table.style.width = "";
  }
}

/** Whether a term of "run" is one of this page, and one of "run#timeline" of this page if it has that section. */
function isHere(place) {
  const [page, section] = place.split("#");
  return page === data.page && (section === undefined || byId(section) !== null);
}

/** Title, links to the sections that are there, definitions of this page's terms, and how it was made. */
function showFrame() {
  byId("kind").textContent = data.kind;
  byId("name").textContent = data.name;
  byId("description").textContent = data.description;
  byId("navigation").append(...[...document.querySelectorAll("main > section")].map((section) =>
      make("li", {}, make("a", {href: "#" + section.id}, section.dataset.nav))));
  for (const term of document.querySelectorAll("#definitions dt[data-in]")) {
    if (term.dataset.in.split(" ").some(isHere)) continue;
    term.nextElementSibling.remove();
    term.remove();
  }
  drawn(focusScrolled);
  drawn(fitOnPaper);
  byId("made").textContent = data.made + " The same again:";
  byId("command").textContent = data.command;
}

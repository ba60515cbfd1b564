/** The page: three things to write, who answers, and what is shown of the answers. */
import { besidePython, broken, inPython, lineIn, marked, modelIn, printed, pythonIn, said, sentence, tabOfModel } from "./answers.js";
import { $, box, make } from "./boxes.js";
import { asBuilt, fromLink, history as runs, modelOf, offer, offerBatch, optionsOf, otherSide, toLink } from "./comparing.js";
import { digest, drafts as drafted, UNKEPT, visits } from "./drafts.js";
import { editor, languages } from "./editor.js";
import { Broken, engine, Stopped } from "./engine.js";
import { read } from "./files.js";
import { drawIn, show, showPage } from "./frames.js";
import { BadLink, choosable, ofLink, packed, texts, unknown, unpacked } from "./link.js";
import { forgetFiles, kept } from "./offline.js";
import { handout, task } from "./prose.js";
import { Queue } from "./queue.js";
import { notice, rest, reviewStatus, running, status } from "./saying.js";
import { keyOf, shown } from "./shown.js";

const PAUSE = 600; // milliseconds after the last key until a model is compiled
const LONG = 5000; // milliseconds, at least, until a compile gives way to that of a newer text: Python then begins anew

/** The options of a select: pairs of a value and its words. */
const fill = (select, pairs) => select.replaceChildren(...pairs.map(([value, words]) => make("option", { value }, words)));

const [config, offers] = await Promise.all([read("config.json"), read("offers.json")]);
const source = editor($("source"), languages.model(offers.words), "source of the model", () => edited("model"), () => run("model"));
const listing = editor($("listing"), languages.listing(), "solution of the puzzle", () => edited("puzzle"), () => run("puzzle"));
const python = editor($("python"), languages.python(), "pass or stage, in Python", () => edited("python"), () => run("python"));
const named = (list, name) => list.find((each) => String(each.name) === String(name)) ?? list[0];

/** What is written in each tab: its editor, and what can be chosen to begin with. */
const written = {
  model: { editor: source, select: $("program"), text: "source", from: offers.programs, original: (each) => each.source },
  puzzle: { editor: listing, select: $("puzzle"), text: "listing", from: offers.puzzles, original: (each) => each.text },
  python: { editor: python, select: $("example"), text: "python", from: offers.examples, original: (each) => each.text },
};
const chosen = (kind) => named(written[kind].from, written[kind].select.value);
const original = (kind) => written[kind].original(chosen(kind));
const item = (kind) => `${kind} ${chosen(kind).name}`;

/** What the visitor has written in place of an original, by its item: it is there again when the item is chosen again. */
const drafts = drafted((how) => notice(UNKEPT[how]));

/**
 * The link that is shown: its fragment, empty for none; its texts by their items, which stand before the originals and have drafts of their
 * own; and the items whose text is shown though there is a draft of it.
 */
let linked = { hash: "", texts: new Map(), read: new Set() };

/** Runs of the program that went well. */
const past = runs();

/** How often what is shown in a tab has become that of something else: an answer to a request from before isn't shown. */
const turns = { model: 0, puzzle: 0, python: 0 };

let tab = "model";
let pause = 0;

const answering = engine(config, (words) => ($("loading").textContent = words));
const keeping = kept(config);
const patience = () => Math.max(LONG, answering.startup());
const requests = new Queue(answering, { before: keeping, busy: (on) => ($("stop").disabled = !on), begun, answered, failed }, patience);

/** What is said above the report, and the program that it is of. */
let summary = { words: "", name: "" };

/** What is asked for in a tab as it is now; null for nothing. */
const asking = (kind) => (kind === "difference" && !$("python-against").value ? null : work[kind].asked());

/** Where results are shown. */
const results = shown({
  summary: { kind: "model", elements: ["summary"] },
  report: { kind: "model", elements: ["report"] },
  model: { kind: "model", elements: ["model-messages"], messages: "This is about an earlier version." },
  puzzle: { kind: "puzzle", elements: ["puzzle-messages"], messages: "This is about an earlier version. Press Check again." },
  python: { kind: "python", elements: ["python-messages"], messages: "This is about an earlier version. Press Judge again." },
  "drawing-puzzle": { kind: "puzzle", elements: ["drawing-puzzle"] },
  "drawing-python": { kind: "python", elements: ["drawing-python"] },
  difference: { kind: "difference", elements: ["difference-messages", "difference"], messages: "" },
}, asking);

const NONE = "no report yet";
const READY = "ready";

/** Marks all that is of an earlier version, wherever it is shown. */
function review() {
  results.review();
  const whose = summary.name === model().name ? "before" : `before, of ${summary.name}`;
  const words = results.old("summary") ? `${whose}: ${summary.words}` : summary.words;
  $("summary").textContent = words || NONE;
  reviewStatus();
}

/** Removes what was said about a tab's text, and what is still to be answered about it: it is another one altogether. */
function forget(kind) {
  turns[kind] += 1;
  requests.drop(kind);
  unsay(kind);
}

/** Removes what was said about a tab's text. */
function unsay(kind) {
  written[kind].editor.mark([]);
  say(kind, []);
  if (kind !== "model") draw(kind);
  if (kind === "python") undiffer();
}

const draw = (kind, page = "", asked = null) => drawIn(results, `drawing-${kind}`, page, asked);

/** Removes the comparison with the compile without the pass or the stage. */
function undiffer() {
  requests.drop("difference");
  say("difference", []);
  show("difference", "");
}

/** Says something of a request; of no request there is nothing to say. */
function say(name, boxes, asked) {
  if (asked) results.set(name, keyOf(asked));
  else results.clear(name);
  $(`${name}-messages`).replaceChildren(...boxes);
}

/** Says what the report of a request says in a line; none removes both. */
function summed(words, asked) {
  if (words) results.set("summary", keyOf(asked));
  else for (const name of ["summary", "report"]) results.clear(name);
  summary = { words, name: modelIn(asked.request).name };
}

/** Shows a report, or the page of a comparison. */
function reported(page, title, asked) {
  results.set("report", keyOf(asked));
  $("report").title = title;
  showPage("report", page);
}

/** The model of the first tab as its controls say. */
const model = () => modelOf(source.text(), `${$("program").value}.tpu`, optionsOf(""));

/** What each kind asks for, and shows; `words` are what it does, the button that asks for it, and what that does then. */
const work = {
  model: {
    words: ({ request }) => [`${modelIn(request).name} was compiled`, "Run", "compile it"],
    asked() {
      const now = model();
      const { said: name, model: a, missing } = otherSide(now, original("model"), past.before(now));
      return { request: a ? { kind: "compare", a, b: now, said: [name, "this version"] } : { kind: "compile", ...now }, missing };
    },
    show(answer, asked) {
      const of = modelIn(asked.request);
      const own = answer.diagnostics.filter((found) => found.side !== "a" && found.file === of.name);
      const there = marked(source, of.source, own);
      const boxes = answer.diagnostics.map((found) => box(found, own.includes(found) ? there : null));
      const sentences = [answer.cause, asked.missing].filter(Boolean).map((text) => sentence(text));
      say("model", [...boxes, ...sentences, ...(answer.notes ?? []).map((note) => said(note))], asked);
      const page = answer.page ?? answer.report;
      if (!page) return;
      past.add(of);
      summed(answer.summary, asked);
      reported(page, asked.request.kind === "compare" ? "the comparison" : "the report", asked);
    },
  },
  puzzle: {
    words: ({ request }) => [`puzzle ${request.number} was checked`, "Check", "check it"],
    asked: () => ({ request: { kind: "puzzle", number: Number($("puzzle").value), text: listing.text() } }),
    show(answer, asked) {
      marked(listing, asked.request.text, lineIn(answer));
      const verdict = answer.text ? [said(answer.text, answer.solved ? "right" : "error")] : [];
      say("puzzle", [...answer.diagnostics.map((found) => box(found)), ...verdict], asked);
      draw("puzzle", answer.page, asked);
    },
  },
  python: {
    words: () => ["your Python was judged", "Judge", "judge it"],
    asked: () => ({ request: { kind: "judge", ...withPython() } }),
    show(answer, asked) {
      const own = answer.diagnostics.filter(inPython);
      const there = marked(python, pythonIn(asked.request), own);
      const boxes = besidePython(answer.diagnostics, { name: chosen("python").name, place: there }, modelTab(asked));
      const verdict = answer.text ? [said(answer.text, answer.equal ? "right" : "error")] : [];
      say("python", [...boxes, ...verdict, ...printed(answer)], asked);
      draw("python", answer.page, asked);
      if (!answer.text) requests.drop("difference");
    },
  },
  difference: {
    words: () => ["your Python was compared", "Judge", "compare it"],
    asked: () => ({ request: { kind: "compare", a: model(), b: withPython(), said: ["the compile without it", "the compile with it"] } }),
    show(answer, asked) {
      const boxes = besidePython(answer.diagnostics, { name: chosen("python").name, place: null }, modelTab(asked));
      say("difference", answer.page ? [sentence(answer.cause)] : boxes, asked);
      if (answer.page) showPage("difference", answer.page);
    },
  },
};

const modelTab = ({ request }) => tabOfModel(request, source, () => choose("model"));

/** The tab that an answer is shown in. */
const tabOf = (kind) => (kind === "difference" ? "python" : kind);

/** The model of the first tab with the pass or the stage. */
function withPython() {
  const { stage } = chosen("python");
  return { ...model(), ...(stage ? { stages: { [stage]: python.text() } } : { passes: python.text() }) };
}

/** Asks for an answer of a kind, or for several one after the other. Python is run only by the button and by Ctrl-Enter in its editor. */
function run(kind) {
  if (kind === "model") clearTimeout(pause);
  else unsay(kind);
  ask(kind);
  if (kind === "python" && $("python-against").value) ask("difference");
}

function ask(kind) {
  requests.ask({ kind, ...work[kind].asked(), turn: turns[tabOf(kind)] });
  reviewStatus();
}

const LATE = "The compile of the earlier text took too long, and has been ended. Python begins anew for this one.";

let counted = () => {};

/** What waited when the visitor stopped what ran. */
let left = [];

/** Says what runs: in another tab whose it is, and what waits here. */
function begun({ kind }) {
  counted = running(() => {
    const own = tabOf(kind);
    if (own === tab) return "running …";
    return `running: ${$(`tab-${own}`).textContent} …${requests.has(tab) ? ` ${work[tab].words({ request: {} })[1]} waits.` : ""}`;
  });
}

/** Says how a request went, for as long as it is the one that is asked for; in another tab, with the name of its own. */
function tellOf(asked, words) {
  const [kind, own] = [asked.kind, tabOf(asked.kind)];
  const key = keyOf(asked);
  status(() => (own === tab ? words : `${$(`tab-${own}`).textContent}: ${words}`), () => results.holds(kind, key));
}

function answered(asked, answer) {
  const { kind, turn, since } = asked;
  counted();
  rest(READY);
  if (turn === turns[tabOf(kind)]) work[kind].show(answer, asked);
  const faults = answer.diagnostics.filter((each) => each.severity === "error").length;
  tellOf(asked, `${faults ? `${faults} ${faults === 1 ? "error" : "errors"}` : "done"} after ${((performance.now() - since) / 1000).toFixed(1)} s`);
  review();
}

function failed(asked, error) {
  const { kind, turn, late } = asked;
  const own = turn === turns[tabOf(kind)];
  counted();
  if (own) (kind === "difference" ? undiffer : unsay)(kind);
  if (error instanceof Broken) {
    if (own) say(kind, [broken()], asked);
    tellOf(asked, "Python has broken down, and begins anew");
  } else if (late) status(() => LATE, () => requests.has("model"));
  else if (error instanceof Stopped) {
    if (own && error.printed) say(kind, printed(error), asked);
    stopped(asked);
  }
  else tellOf(asked, error.message);
  loaded("Python begins anew");
  review();
}

/** Says in these words how Python is, until it is there. */
function loaded(words) {
  rest(words);
  return answering.start().then(() => rest(READY), (error) => forgetFiles().then(() => rest(error.message)));
}

/** Says what is stopped, and how it is asked for again. */
function stopped(asked) {
  const [done, button, again] = work[asked.kind].words(asked);
  if (requests.has("model")) status(() => `stopped before ${done}; the model is compiled next`, () => requests.has("model"));
  else {
    const dropped = left.map((kind) => work[kind].words({ request: {} })[1]);
    const more = dropped.length > 0 ? `; ${dropped.join(" and ")}, which waited, ${dropped.length > 1 ? "are" : "is"} dropped` : "";
    tellOf({ ...asked, ...asking(asked.kind) }, `stopped before ${done}; press ${button} to ${again}${more}`);
  }
}

function later() {
  clearTimeout(pause);
  pause = setTimeout(() => run("model"), PAUSE);
}

/** What the draft of an item is kept as: a link's text has its own. */
const slot = (name) => (linked.texts.has(name) ? `${digest(linked.hash)} ${name}` : name);

/** What the draft of an item is in place of. */
const given = (kind) => linked.texts.get(item(kind)) ?? original(kind);

/** Keeps what the visitor has written, for when the item is chosen again, and for when the page is loaded again. */
function keep(kind) {
  const text = written[kind].editor.text();
  if (!linked.read.has(item(kind))) drafts.set(slot(item(kind)), text === given(kind) ? null : text);
  $(`${kind}-original`).disabled = text === original(kind) || linked.read.has(item(kind));
  if (kind === "model") offerBatch(text);
  tell(kind);
  remember();
  review();
}

/** What is chosen, for when this tab is at the same address again. */
const remember = () => visits.set(location.hash, choices());

/** Says whose text is shown where a link is, with the ways to the others. */
function tell(kind) {
  const [name, bar] = [item(kind), $(`${kind}-whose`)];
  const [draft, reads] = [drafts.get(slot(name)) !== null, linked.read.has(name)];
  bar.hidden = !linked.texts.has(name) || (!draft && linked.texts.get(name) === (drafts.get(name) ?? original(kind)));
  const way = (words, title, go) => make("button", { type: "button", title, onclick: go }, words);
  const without = way("Without the link", "your own text in place of this one, or else the one that came with the page", leave);
  if (reads) {
    const back = way("What you have written", "your draft", () => open(kind, chosen(kind).name));
    const anew = way("Begin anew with this", "throws away what you have written over it", () => rewrite(kind, given(kind)));
    bar.replaceChildren("The link's text, to be read: what you have written over it is kept. ", back, " ", anew, " ", without);
  } else if (draft) {
    const linkText = way("The link's text", "what you have written is kept", () => rewrite(kind, given(kind), true));
    bar.replaceChildren("What you have written over the link's text. ", linkText, " ", without);
  } else bar.replaceChildren("The link's text. ", without);
}

/** The address of this page with a link's fragment, or without any. */
const addressWith = (hash) => location.pathname + location.search + hash;

/** Shows the same items without the link, as another step of the browser's history. */
function leave() {
  const now = choices();
  history.pushState(null, "", addressWith(""));
  restore({}, now);
}

/** What is shown is that of the text, as soon as it is there. */
function edited(kind) {
  if (location.hash !== linked.hash) history.replaceState(null, "", addressWith(linked.hash)); // it no longer holds what is written
  keep(kind);
  if (kind === "model") later();
}

/** Chooses what to begin with: as it is given, or as the visitor has left it. */
function open(kind, name) {
  const { select, from } = written[kind];
  select.value = named(from, name).name;
  if (kind === "model") past.clear();
  rewrite(kind, drafts.get(slot(item(kind))) ?? given(kind));
  if (kind === "puzzle") $("task").replaceChildren(...task(chosen(kind)), handout("The handout: the machine and its instructions", offers.machine));
}

/** @param {string} kind @param {string} text @param {boolean} locked it is shown only, and what is written is kept as it is */
function rewrite(kind, text, locked = false) {
  linked.read[locked ? "add" : "delete"](item(kind));
  written[kind].editor.write(text, locked);
  keep(kind);
  forget(kind);
  if (kind === "model") changed();
}

/** After the text of the model or the controls are others. A program's report is there before Python is. */
function changed() {
  offer();
  remember();
  const built = asBuilt(model(), chosen("model"), offers.targets[0]);
  if (built) past.add(model());
  if (!built || $("against").value) later();
  else {
    clearTimeout(pause);
    forget("model");
    showBuilt(built);
  }
  review();
}

/** Shows a report that was made when the page was built; where it can't be had, as without a network, the model is compiled. */
async function showBuilt(built) {
  const [turn, asked] = [turns.model, work.model.asked()];
  summed(`${built.summary} (made when this page was built)`, asked);
  const page = await fetch(built.report).then((answer) => (answer.ok ? answer.text() : null)).catch(() => null);
  if (turn !== turns.model) return;
  if (page === null) {
    say("model", [sentence("The report made when this page was built can't be loaded. The model is compiled instead, as soon as Python is there.")], asked);
    show("report", "");
    summed("", asked);
    run("model");
  } else reported(page, "the report", asked);
  review();
}

function choose(name) {
  tab = Object.hasOwn(written, name) ? name : "model";
  for (const each of Object.keys(written)) {
    const on = each === tab;
    $(`panel-${each}`).hidden = !on;
    $(`tab-${each}`).setAttribute("aria-selected", on);
    $(`tab-${each}`).tabIndex = on ? 0 : -1;
  }
  remember();
  $("run").textContent = { model: "Run", puzzle: "Check", python: "Judge" }[tab];
  review();
}

/** Left and right go from tab to tab. */
function step(event) {
  const way = ["ArrowRight", "ArrowLeft"].indexOf(event.key) + 1;
  if (!way) return;
  const names = Object.keys(written);
  choose(names[(names.indexOf(tab) + way) % names.length]);
  $(`tab-${tab}`).focus();
}

const options = ["target", "batch", "level"];
const controls = [...options, "against", ...options.map((name) => `other-${name}`), "python-against"];

/** What is chosen, by the names that a link has for it. */
const choices = () => Object.fromEntries([["tab", tab], ...["program", "puzzle", "example", ...controls].map((name) => [name, $(name).value])]);

/** What a link holds: what is chosen, what is written, and the run before where it is compared with. */
function state() {
  const before = $("against").value === "before" ? past.before(model()) : undefined;
  return { ...choices(), source: source.text(), listing: listing.text(), python: python.text(), ...(before && toLink(before)) };
}

/** Sets the controls that the values are of, where they can be chosen. */
function set(values) {
  for (const [name, value] of Object.entries(values)) {
    if (controls.includes(name) && choosable($(name), value)) $(name).value = value;
  }
}

/**
 * Shows what a link has, with what the visitor has written over it, or else what is kept without one. Python in a link waits for the
 * button: it is someone else's program.
 *
 * @param {object} held what the link in the address has; nothing where there is none
 * @param {object | null} chosenLast what was chosen when this tab was last at this address
 */
function restore(held, chosenLast) {
  const wanted = texts({ ...held, ...chosenLast }, Object.keys(choices()));
  linked = { hash: location.hash, texts: ofLink(held, written, named), read: new Set() };
  set({ batch: "", ...wanted });
  for (const [kind, { select }] of Object.entries(written)) open(kind, wanted[select.id]);
  const before = fromLink(held, model());
  if (before) past.add(before);
  choose(wanted.tab);
}

async function link() {
  try {
    history.replaceState(null, "", await packed(state()));
  } catch (error) {
    if (!(error instanceof BadLink)) throw error;
    const key = JSON.stringify(state());
    return status(() => "what is written is too large for a link", () => JSON.stringify(state()) === key);
  }
  const { hash } = location;
  remember();
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  return status(() => "the address holds all that is written", () => location.hash === hash);
}

/** Shows what the address says. A link that can't be read leaves the address, and is told of. */
async function arrive() {
  const { hash } = location;
  try {
    const found = await unpacked(hash);
    if (hash !== location.hash) return; // the address has become another one
    const strange = unknown(found ?? {}, Object.keys(choices()));
    notice(strange.length > 0 ? `The link names ${strange.join(", ")}, which this page doesn't have. Others are chosen instead.` : "");
    restore(found ?? {}, visits.get(hash));
  } catch (error) {
    if (!(error instanceof BadLink)) throw error;
    history.replaceState(null, "", addressWith(""));
    restore({}, visits.get(""));
    const instead = written[tab].editor.text() === original(tab) ? "what came with the page" : "your draft";
    notice(`The link can't be read: ${error.message}. Instead, ${instead} is shown.`);
  }
}

/** A comparison that isn't asked for any more goes; one that is asked for comes when the button is pressed. */
function compared() {
  if (!$("python-against").value) undiffer();
  remember();
  review();
}

function wire() {
  for (const [kind, { select, from }] of Object.entries(written)) {
    fill(select, from.map((each) => [each.name, each.title ?? each.name]));
    select.addEventListener("change", () => open(kind, select.value));
    $(`${kind}-original`).addEventListener("click", () => rewrite(kind, original(kind)));
  }
  for (const name of ["target", "other-target"]) fill($(name), offers.targets.map((each) => [each, each]));
  $("against").addEventListener("change", () => offer(true));
  for (const name of controls) $(name).addEventListener("change", name === "python-against" ? compared : changed);
  for (const name of Object.keys(written)) {
    $(`tab-${name}`).addEventListener("click", () => choose(name));
    $(`tab-${name}`).addEventListener("keydown", step);
  }
  $("run").addEventListener("click", () => run(tab));
  $("stop").addEventListener("click", () => (left = requests.stop()));
  $("link").addEventListener("click", link);
  addEventListener("hashchange", arrive);
}

wire();
await arrive();
await keeping;
await loaded("Python is being loaded; until then the reports are those made when this page was built");
document.documentElement.dataset.ready = "";

/** The page: three things to write, who answers, and what is shown of the answers. */
import { $, box, make } from "./boxes.js";
import { editor, languages } from "./editor.js";
import { engine, Stopped } from "./engine.js";
import { packed, unpacked } from "./link.js";

const PAUSE = 600; // milliseconds after the last key until a model is compiled
const read = async (address) => (await fetch(address)).json();

/** The options of a select: pairs of a value and its words. */
const fill = (select, pairs) => select.replaceChildren(...pairs.map(([value, words]) => make("option", { value }, words)));

const [config, offers] = await Promise.all([read("config.json"), read("offers.json")]);
const source = editor($("source"), languages.model(offers.words), "source of the model", () => edited("model"), () => run("model"));
const listing = editor($("listing"), languages.listing(), "solution of the puzzle", () => edited("puzzle"), () => run("puzzle"));
const python = editor($("python"), languages.python(), "pass or stage, in Python", () => edited("python"), () => run("python"));
const named = (list, name) => list.find((each) => String(each.name) === String(name)) ?? list[0];

/** What is written in each tab: its editor, and what can be chosen to begin with. */
const written = {
  model: { editor: source, select: $("program"), from: offers.programs, original: (each) => each.source },
  puzzle: { editor: listing, select: $("puzzle"), from: offers.puzzles, original: (each) => each.text },
  python: { editor: python, select: $("example"), from: offers.examples, original: (each) => each.text },
};
const chosen = (kind) => named(written[kind].from, written[kind].select.value);
const original = (kind) => written[kind].original(chosen(kind));
const item = (kind) => `${kind} ${chosen(kind).name}`;

/** What the visitor has written in place of an original, by its item: it is there again when the item is chosen again. */
const drafts = new Map();

/** Requests that wait, by their kind: each is what was written when it was asked for. */
const waiting = new Map();

/** How often what is shown in a tab has become that of something else: an answer to a request from before isn't shown. */
const turns = { model: 0, puzzle: 0, python: 0 };

let tab = "model";
let busy = false;
let pause = 0;
let drawn = "";

const answering = engine(config, (words) => ($("loading").textContent = `loads ${words}`));
const status = (words) => ($("status").textContent = words);

/** Shows a report. It runs its own script in a frame that can reach neither this page nor anything else. */
function show(address) {
  if (drawn.startsWith("blob:")) URL.revokeObjectURL(drawn);
  drawn = address;
  $("report").src = address;
}

function summary(words, old = false) {
  $("summary").textContent = words;
  for (const each of [$("summary"), $("report")]) each.classList.toggle("old", old);
}

/** The report that is shown is of an earlier text. */
const outdated = () => summary(`before: ${$("summary").textContent.replace(/^before: /, "")}`, true);

/** Removes what was said about an earlier text of a tab, and what is still to be answered about it. */
function forget(kind) {
  turns[kind] += 1;
  waiting.delete(kind);
  written[kind].editor.mark([]);
  $(`${kind}-messages`).replaceChildren();
}

const said = (text, kind = "") => make("div", { className: `message ${kind}` }, make("pre", {}, text));
const printed = (answer) => (answer.printed ? [said(`printed:\n${answer.printed}`)] : []);

/** What the controls of the first tab say, for a request. */
function model() {
  const batch = $("batch").value;
  const options = { target: $("target").value, level: Number($("level").value), params: batch ? { batch } : {} };
  return { source: source.text(), name: `${$("program").value}.tpu`, ...options };
}

/** A model as it was when the page was built has its report from then. */
function asBuilt() {
  const { source: text, ...options } = model();
  const program = chosen("model");
  const plain = options.target === offers.targets[0] && options.level === 2 && $("batch").value === "";
  return plain && text === program.source && program.report ? program : null;
}

const work = {
  model: {
    request: () => ({ kind: "compile", ...model() }),
    show(answer) {
      source.mark(answer.diagnostics);
      $("model-messages").replaceChildren(...answer.diagnostics.map((found) => box(found, source)), ...(answer.notes ?? []).map((note) => said(note)));
      if (!answer.report) return outdated();
      show(URL.createObjectURL(new Blob([answer.report], { type: "text/html" })));
      return summary(answer.summary);
    },
  },
  puzzle: {
    request: () => ({ kind: "puzzle", number: Number($("puzzle").value), text: listing.text() }),
    show(answer) {
      const place = answer.line ? [{ code: "here", severity: "error", message: answer.text, spans: [{ line: answer.line, column: 1, end_line: answer.line, end_column: 200 }] }] : [];
      listing.mark(place);
      const verdict = answer.text ? [said(answer.text, answer.solved ? "right" : "error")] : [];
      $("puzzle-messages").replaceChildren(...answer.diagnostics.map((found) => box(found)), ...verdict);
    },
  },
  python: {
    request() {
      const { stage } = chosen("python");
      return { kind: "judge", ...model(), ...(stage ? { stages: { [stage]: python.text() } } : { passes: python.text() }) };
    },
    show(answer) {
      const own = answer.diagnostics.filter((found) => found.file?.endsWith(".py"));
      python.mark(own);
      const boxes = answer.diagnostics.map((found) => (own.includes(found) ? box({ ...found, file: chosen("python").name }, python) : box(found, null)));
      const verdict = answer.text ? [said(answer.text, answer.equal ? "right" : "error")] : [];
      $("python-messages").replaceChildren(...boxes, ...verdict, ...printed(answer));
    },
  },
};

/** Asks for an answer of a kind, or for several one after the other. Python is run only by the button and by Ctrl-Enter in its editor. */
function run(kind) {
  if (kind === "model") clearTimeout(pause);
  waiting.set(kind, work[kind].request());
  if (!busy) answerAll();
}

/** Answers what waits, until nothing does. */
async function answerAll() {
  busy = true;
  $("stop").disabled = false;
  await keeping;
  while (waiting.size) {
    const [[kind, request]] = waiting;
    waiting.delete(kind);
    await answered(kind, request);
  }
  busy = false;
  $("stop").disabled = true;
}

async function answered(kind, request) {
  const [turn, started] = [turns[kind], performance.now()];
  status("running …");
  try {
    const found = await answering.ask(request);
    if (turn === turns[kind]) work[kind].show(found);
    const faults = found.diagnostics.filter((each) => each.severity === "error").length;
    status(`${faults ? `${faults} ${faults === 1 ? "error" : "errors"}` : "done"} after ${((performance.now() - started) / 1000).toFixed(1)} s`);
  } catch (error) {
    status(error instanceof Stopped ? "stopped" : String(error.message));
    if (turn === turns[kind]) unanswered(kind);
  }
}

/** What is said is of an earlier text, and of this one nothing is known. */
function unanswered(kind) {
  forget(kind);
  if (kind === "model") outdated();
}

function stop() {
  waiting.clear();
  answering.stop();
}

function later() {
  clearTimeout(pause);
  pause = setTimeout(() => run("model"), PAUSE);
}

/** Keeps what the visitor has written, for when the item is chosen again. */
function keep(kind) {
  const text = written[kind].editor.text();
  if (text === original(kind)) drafts.delete(item(kind));
  else drafts.set(item(kind), text);
  $(`${kind}-original`).disabled = !drafts.has(item(kind));
}

/** What is shown is that of the text, as soon as it is there. */
function edited(kind) {
  keep(kind);
  if (kind === "model") later();
}

/** Chooses what to begin with: as it is given, or as the visitor has left it. */
function open(kind, name) {
  const { select, from } = written[kind];
  select.value = named(from, name).name;
  rewrite(kind, drafts.get(item(kind)) ?? original(kind));
  if (kind === "puzzle") $("task").textContent = chosen(kind).task;
}

function rewrite(kind, text) {
  written[kind].editor.write(text);
  keep(kind);
  forget(kind);
  if (kind === "model") changed();
}

/** After the text of the model or the controls are others. A program's report is there before Python is. */
function changed() {
  const built = asBuilt();
  if (!built) return later();
  clearTimeout(pause);
  forget("model");
  show(built.report);
  return summary(`${built.summary} (made when this page was built)`);
}

function choose(name) {
  tab = Object.hasOwn(work, name) ? name : "model";
  for (const each of Object.keys(work)) {
    const on = each === tab;
    $(`panel-${each}`).hidden = !on;
    $(`tab-${each}`).setAttribute("aria-selected", on);
    $(`tab-${each}`).tabIndex = on ? 0 : -1;
  }
  $("run").textContent = { model: "Run", puzzle: "Check", python: "Judge" }[tab];
}

/** Left and right go from tab to tab. */
function step(event) {
  const way = ["ArrowRight", "ArrowLeft"].indexOf(event.key) + 1;
  if (!way) return;
  const names = Object.keys(work);
  choose(names[(names.indexOf(tab) + way) % names.length]);
  $(`tab-${tab}`).focus();
}

const controls = ["target", "batch", "level"];
const state = () => ({
  tab, program: $("program").value, source: source.text(), puzzle: $("puzzle").value, listing: listing.text(), example: $("example").value,
  python: python.text(), ...Object.fromEntries(controls.map((name) => [name, $(name).value])),
});

/** What a link holds: texts by their names; anything else in it has no effect. Its Python waits for the button, as it is someone else's program. */
function restore(given) {
  const text = (name) => (Object.hasOwn(given, name) && typeof given[name] === "string" ? given[name] : null);
  const texts = { model: "source", puzzle: "listing", python: "python" };
  $("batch").value = text("batch") ?? "";
  for (const name of ["target", "level"]) if ([...$(name).options].some((each) => each.value === text(name))) $(name).value = text(name);
  for (const [kind, name] of Object.entries(texts)) {
    open(kind, text(written[kind].select.id));
    if (text(name) !== null) rewrite(kind, text(name));
  }
  choose(text("tab"));
}

async function link() {
  location.hash = await packed(state());
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  status("the address holds all that is written");
}

function wire() {
  for (const [kind, { select, from }] of Object.entries(written)) {
    fill(select, from.map((each) => [each.name, each.title ?? each.name]));
    select.addEventListener("change", () => open(kind, select.value));
    $(`${kind}-original`).addEventListener("click", () => rewrite(kind, original(kind)));
  }
  fill($("target"), offers.targets.map((name) => [name, name]));
  for (const name of controls) $(name).addEventListener("change", changed);
  for (const name of Object.keys(work)) {
    $(`tab-${name}`).addEventListener("click", () => choose(name));
    $(`tab-${name}`).addEventListener("keydown", step);
  }
  $("run").addEventListener("click", () => run(tab));
  $("stop").addEventListener("click", stop);
  $("link").addEventListener("click", link);
  addEventListener("hashchange", async () => {
    const given = await unpacked(location.hash);
    if (given) restore(given);
  });
}

/** The service worker keeps what is loaded, from the first file of Pyodide on: so it comes first. */
async function kept() {
  if (config.engine === "local" || !("serviceWorker" in navigator)) return;
  const soon = new Promise((resolve) => setTimeout(resolve, 3000));
  const control = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve, { once: true }));
  try {
    await navigator.serviceWorker.register("service.js");
    if (!navigator.serviceWorker.controller) await Promise.race([control, soon]);
  } catch {
    // Without one the page works, and loads everything anew at each visit.
  }
}

const keeping = kept();
wire();
restore((await unpacked(location.hash)) ?? {});
await keeping;
status("Python is being loaded; until then the reports are those made when this page was built");
try {
  await answering.start();
  status("ready");
} catch (error) {
  status(String(error.message));
}
document.documentElement.dataset.ready = "";

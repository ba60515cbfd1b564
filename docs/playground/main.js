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
const keys = { changed: () => later(), run: () => run() };
const source = editor($("source"), languages.model(offers.words), "source of the model", () => edited(), keys.run);
const listing = editor($("listing"), languages.listing(), "solution of the puzzle", () => {}, keys.run);
const python = editor($("python"), languages.python(), "pass or stage, in Python", () => {}, keys.run);
const named = (list, name) => list.find((each) => String(each.name) === String(name)) ?? list[0];

let tab = "model";
let busy = false;
let again = false;
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
  $("summary").classList.toggle("old", old);
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
  const chosen = named(offers.programs, $("program").value);
  const plain = options.target === offers.targets[0] && options.level === 2 && $("batch").value === "";
  return plain && text === chosen.source && chosen.report ? chosen : null;
}

const work = {
  model: {
    request: () => ({ kind: "compile", ...model() }),
    show(answer) {
      source.mark(answer.diagnostics);
      $("model-messages").replaceChildren(...answer.diagnostics.map((found) => box(found, source)), ...(answer.notes ?? []).map((note) => said(note)));
      if (!answer.report) return summary(`before: ${$("summary").textContent.replace(/^before: /, "")}`, true);
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
      const chosen = named(offers.examples, $("example").value);
      return { kind: "judge", ...model(), ...(chosen.stage ? { stages: { [chosen.stage]: python.text() } } : { passes: python.text() }) };
    },
    show(answer) {
      const own = answer.diagnostics.filter((found) => found.file?.endsWith(".py"));
      python.mark(own);
      const boxes = answer.diagnostics.map((found) => box(found, own.includes(found) ? python : null));
      const verdict = answer.text ? [said(answer.text, answer.equal ? "right" : "error")] : [];
      $("python-messages").replaceChildren(...boxes, ...verdict, ...printed(answer));
    },
  },
};

/** Answers for the tab that is open; what was asked for meanwhile is answered after it, once. */
async function run() {
  clearTimeout(pause);
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  $("stop").disabled = false;
  const [asked, request, started] = [work[tab], work[tab].request(), performance.now()];
  status("running …");
  try {
    await keeping;
    const answer = await answering.ask(request);
    asked.show(answer);
    const faults = answer.diagnostics.filter((found) => found.severity === "error").length;
    status(`${faults ? `${faults} ${faults === 1 ? "error" : "errors"}` : "done"} after ${((performance.now() - started) / 1000).toFixed(1)} s`);
  } catch (error) {
    status(error instanceof Stopped ? "stopped" : String(error.message));
  }
  busy = false;
  $("stop").disabled = true;
  if (again) {
    again = false;
    run();
  }
}

function later() {
  clearTimeout(pause);
  pause = setTimeout(run, PAUSE);
}

/** What is shown is that of the text, as soon as it is there. */
function edited() {
  if (tab === "model") later();
}

/** Chooses a program: its report is there before Python is. */
function open(name) {
  const chosen = named(offers.programs, name);
  $("program").value = chosen.name;
  source.write(chosen.source);
  source.mark([]);
  $("model-messages").replaceChildren();
  changed();
}

/** After the text or the controls are others. */
function changed() {
  const built = asBuilt();
  if (!built) return later();
  clearTimeout(pause);
  show(built.report);
  return summary(`${built.summary} (made when this page was built)`);
}

function puzzle(number) {
  const chosen = named(offers.puzzles, number);
  $("puzzle").value = chosen.name;
  $("task").textContent = chosen.task;
  listing.write(chosen.text);
  $("puzzle-messages").replaceChildren();
}

function example(name) {
  const chosen = named(offers.examples, name);
  $("example").value = chosen.name;
  python.write(chosen.text);
  $("python-messages").replaceChildren();
}

function choose(name) {
  tab = name in work ? name : "model";
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
  const way = { ArrowRight: 1, ArrowLeft: 2 }[event.key];
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

/** What a link holds. Its Python waits for the button, as it is someone else's program. */
function restore(given) {
  const text = (name, otherwise = "") => String(given[name] ?? otherwise);
  open(text("program"));
  puzzle(text("puzzle"));
  example(text("example"));
  for (const [place, name] of [[source, "source"], [listing, "listing"], [python, "python"]]) if (given[name]) place.write(text(name));
  for (const name of controls) if (given[name]) $(name).value = text(name);
  choose(text("tab", "model"));
  changed();
}

async function link() {
  location.hash = await packed(state());
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  status("the address holds all that is written");
}

function wire() {
  fill($("program"), offers.programs.map((each) => [each.name, each.name]));
  fill($("target"), offers.targets.map((name) => [name, name]));
  fill($("puzzle"), offers.puzzles.map((each) => [each.name, each.title]));
  fill($("example"), offers.examples.map((each) => [each.name, each.name]));
  $("program").addEventListener("change", () => open($("program").value));
  $("puzzle").addEventListener("change", () => puzzle($("puzzle").value));
  $("example").addEventListener("change", () => example($("example").value));
  for (const name of controls) $(name).addEventListener("change", changed);
  for (const name of Object.keys(work)) {
    $(`tab-${name}`).addEventListener("click", () => choose(name));
    $(`tab-${name}`).addEventListener("keydown", step);
  }
  $("run").addEventListener("click", run);
  $("stop").addEventListener("click", () => answering.stop());
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

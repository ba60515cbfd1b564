/** The page of `tpucc watch`: an editor of the watched file, and the report of the file in a frame, which hears what the server has to say. */
import { $, box, make } from "./boxes.js";
import { editor, languages } from "editor";

const KEY = new URLSearchParams(location.search).get("key") ?? "";
const LOST = "tpucc watch can't be reached";
const CLOSED = "this page can't save: open the address that tpucc watch printed when it started";
const source = editor($("source"), languages.model(JSON.parse($("words").textContent)), "source of the model", edited, save);
const report = $("report");

/** The file as it was when it was last read or written here, and as it is if the visitor has to choose: without a text it has been deleted, or
 * can't be read, and then it has the words why. */
let kept = { text: "", tag: "" };
let other = null;
let saves = true;

/** What asks the server is done one after the other: an old answer never comes after a new one. */
let last = Promise.resolve();
const inTurn = (work) => (last = last.then(work).catch(() => say(LOST)));

const unsaved = () => source.text() !== kept.text;
const say = (words) => ($("status").textContent = words);

/** After the text, or what is known of the file, has changed. */
function edited() {
  $("save").disabled = !unsaved();
  const gone = other?.text === null;
  const why = other?.why ?? "The file has been deleted.";
  $("conflict").hidden = other === null;
  $("differs").textContent = gone ? `${why} What stands here is in no file.` : "The file has other text now. What you have written here is not saved.";
  $("take").hidden = gone;
  $("over").hidden = other?.why !== undefined;
  $("over").textContent = gone ? "Save mine" : "Save mine over it";
  if (!saves) return say(CLOSED);
  return say(unsaved() ? "not saved: Ctrl-S writes the file" : "");
}

/** @param {Response} answer */
async function contents(answer) {
  return { text: (await answer.text()).replaceAll(/\r\n?/g, "\n"), tag: answer.headers.get("ETag") };
}

/** Shows the file as it is. A text that isn't saved stays until the visitor has chosen. */
async function follow() {
  const answer = await fetch("source", { headers: { "X-Tpucc-Key": KEY } });
  saves = answer.headers.get("Allow")?.includes("PUT") ?? saves;
  if (answer.status === 404) {
    other = { text: null, tag: answer.headers.get("ETag") };
    return edited();
  }
  if (!answer.ok) {
    const words = (await answer.text()).trim();
    other = { text: null, tag: kept.tag, why: `${words[0].toUpperCase()}${words.slice(1)}.` };
    return edited();
  }
  const found = await contents(answer);
  other = found.tag === kept.tag || found.text === source.text() || !unsaved() ? null : found;
  if (other === null && found.tag !== kept.tag) take(found);
  return edited();
}

function take(found) {
  const first = kept.tag === "";
  [kept, other] = [found, null];
  if (first) source.write(found.text);
  else if (found.text !== source.text()) source.follow(found.text);
  edited();
}

async function write() {
  const headers = { "Content-Type": "text/plain; charset=utf-8", "If-Match": kept.tag, "X-Tpucc-Key": KEY };
  const answer = await fetch("source", { method: "PUT", headers, body: source.text() });
  if (answer.status === 412) return follow();
  if (!answer.ok) return say(await answer.text());
  [kept, other] = [await contents(answer), null];
  return edited();
}

function save() {
  if (unsaved()) inTurn(write);
}

/** Underlines what the messages on the file speak of, and says them below the editor, with what has changed since the version before. */
async function judge(change) {
  const found = await (await fetch("diagnostics.json")).json();
  if (!unsaved()) source.mark(found);
  const changed = change ? [make("div", { className: "message", id: "change" }, make("p", {}, change))] : [];
  $("messages").replaceChildren(...found.map((each) => box(each, source)), ...changed);
}

/** @param {{compiling: boolean, change: string, pages: Object<string, string>}} state */
async function hear(state) {
  await follow();
  $("changes").disabled = !state.pages["/changes"];
  if (!state.compiling) await judge(state.change);
}

/** The comparison in place of the report, or the report again. */
function compare() {
  const compared = $("changes").getAttribute("aria-pressed") !== "true";
  $("changes").setAttribute("aria-pressed", compared);
  report.title = compared ? "the comparison" : "the report";
  report.src = compared ? "changes" : `view${location.hash}`;
}

function keys(event) {
  if (!(event.ctrlKey || event.metaKey) || event.key !== "s") return;
  event.preventDefault();
  save();
}

/** The address has the selection of the report, so that it outlives a reload. */
function frame() {
  const own = report.contentWindow;
  own.addEventListener("keydown", keys);
  if (!own.location.pathname.endsWith("/view")) return;
  for (const kind of ["click", "keyup"]) own.addEventListener(kind, () => history.replaceState(null, "", own.location.hash || location.href.split("#")[0]));
}

addEventListener("keydown", keys);
addEventListener("message", (event) => event.origin === location.origin && inTurn(() => hear(event.data)));
addEventListener("beforeunload", (event) => unsaved() && event.preventDefault());
report.addEventListener("load", frame);
$("save").addEventListener("click", save);
$("changes").addEventListener("click", compare);
$("take").addEventListener("click", () => take(other));
$("over").addEventListener("click", () => {
  kept.tag = other.tag;
  inTurn(write);
});
await inTurn(follow);
report.src = `view${location.hash}`;

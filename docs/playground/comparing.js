/** What the model of the first tab is compared with: its original, the run before, or itself with other options. */
import { $ } from "./boxes.js";
import { choosable, texts } from "./link.js";

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * A model as it is compiled: the request without its kind.
 *
 * @typedef {{source: string, name: string, target: string, level: number, params: {batch?: string}}} Model
 */

/** @param {string} source @param {string} name @param {{target: string, batch: string, level: string}} options @returns {Model} */
export function modelOf(source, name, { target, batch, level }) {
  return { source, name, target, level: Number(level), params: batch ? { batch } : {} };
}

const BATCH = /^param[ \t]+batch\b/m;

/** The fields of a batch count where the source has a param of this name. @param {string} source */
export function offerBatch(source) {
  const none = !BATCH.test(source);
  const words = none ? { placeholder: "fixed", title: "the source has no param batch, only sizes that are numbers" } : { placeholder: "as written", title: "" };
  for (const name of ["batch", "other-batch"]) Object.assign($(name), { disabled: none, ...words });
}

/** The options that are chosen in the controls of a side. @param {"" | "other-"} side */
export function optionsOf(side) {
  const batch = $(`${side}batch`);
  return { target: $(`${side}target`).value, batch: batch.disabled ? "" : batch.value, level: $(`${side}level`).value };
}

/** The options of a model that `now` hasn't, as the controls name them. */
function differing(now, model) {
  const batch = model.params.batch ? `batch ${model.params.batch}` : "the batch as written";
  const words = [
    now.target !== model.target && `target ${model.target}`,
    now.level !== model.level && `-O${model.level}`,
    now.params.batch !== model.params.batch && batch,
  ].filter(Boolean);
  return words.length > 0 ? `the compile with ${words.join(" and ")}` : "the same again";
}

/** A program with the report that was made of it when the page was built, where the model is as it was then; else null. @param {Model} now */
export function asBuilt({ source, target, level, params }, program, first) {
  const plain = target === first && level === 2 && !params.batch;
  return plain && source === program.source && program.report ? program : null;
}

/** The last runs of a program that went well and differ in their text or their options, the newest first. */
export function history() {
  let runs = [];

  /** @param {Model} run it may have more fields, as a request has */
  function add({ source, name, target, level, params }) {
    const model = { source, name, target, level, params };
    if (!same(runs[0], model)) runs = [model, ...runs].slice(0, 2);
  }

  /** The last one that isn't this. @param {Model} now @returns {Model | undefined} */
  const before = (now) => runs.find((each) => !same(each, now));

  return { add, before, clear: () => (runs = []) };
}

const NONE = "There is no run before this one: change the model, and it is compared with what it was.";

/**
 * The other model and what it is called; none where nothing is asked for, or `missing` says why there is none.
 *
 * @param {Model} now
 * @param {string} original the source as it was given
 * @param {Model | undefined} before
 * @returns {{said?: string, model?: Model, missing?: string}}
 */
export function otherSide(now, original, before) {
  const asked = $("against").value;
  if (asked === "original") return { said: "the original", model: { ...now, source: original } };
  if (asked === "before") return before ? { said: "the run before", model: before } : { missing: NONE };
  if (asked !== "options") return {};
  const model = modelOf(now.source, now.name, optionsOf("other-"));
  return { said: differing(now, model), model };
}

/** Shows the other options where they count; they begin as those that are chosen, at another level, which is this one's once another is chosen. */
export function offer(begins = false) {
  $("other").hidden = $("against").value !== "options";
  if (!begins) return;
  for (const name of ["target", "batch"]) $(`other-${name}`).value = $(name).value;
  $("other-level").value = $("level").value === "0" ? "2" : "0";
  for (const name of ["target", "batch"]) $(`other-${name}`).addEventListener("change", sameLevel, { once: true });
  $("other-level").addEventListener("change", forgetLevel, { once: true });
}

/** After another option than the level has been chosen first: it is compared alone. */
function sameLevel() {
  $("other-level").value = $("level").value;
  forgetLevel();
}

function forgetLevel() {
  for (const name of ["target", "batch"]) $(`other-${name}`).removeEventListener("change", sameLevel);
}

/** A run as a link has it. @param {Model} run */
export function toLink({ source, target, level, params }) {
  return { "before-source": source, "before-target": target, "before-level": String(level), "before-batch": params.batch ?? "" };
}

/** The run that a link has: a source and options that can be chosen, and nothing else; null for none. @param {object} given @param {Model} now */
export function fromLink(given, now) {
  const names = ["source", "target", "level", "batch"].map((name) => `before-${name}`);
  const [source, target, level, batch] = names.map((name) => texts(given, [name])[name]);
  if (source === undefined) return null;
  const options = { target: choosable($("target"), target) ? target : now.target, level: choosable($("level"), level) ? level : now.level };
  return modelOf(source, now.name, { ...options, batch: batch ?? "" });
}

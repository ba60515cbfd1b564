/** What is said beside the title: how far the work is, and what the visitor should know whatever is done next. */
import { $, make } from "./boxes.js";

const line = { rest: "", said: null, running: false };

/** Shows what holds: what runs, or else what was said last, or else how Python is. Called after what is said may hold no longer. */
export function reviewStatus() {
  if (line.running) return;
  const words = line.said?.holds() ? line.said.words() : line.rest;
  if ($("status").textContent !== words) $("status").textContent = words;
}

/** How Python is: said while there is nothing else to say. @param {string} words */
export function rest(words) {
  line.rest = words;
  reviewStatus();
}

/** @param {() => string} words @param {() => boolean} holds whether it is still so: it isn't said beside something else */
export function status(words, holds) {
  line.said = { words, holds };
  reviewStatus();
}

/** @param {string} words none remove it */
export function notice(words) {
  $("notice").textContent = words;
  $("notice").hidden = words === "";
}

/** Counts the seconds, which aren't read aloud, until the function that it returns is called. */
export function running() {
  let seconds = 0;
  const shown = make("span", { ariaHidden: "true" });
  line.running = true;
  $("status").replaceChildren("running …", shown);
  const counting = setInterval(() => (shown.textContent = ` ${(seconds += 1)} s`), 1000);
  return () => {
    clearInterval(counting);
    line.running = false;
  };
}

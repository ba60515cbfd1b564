/** What is said beside the title: how far the work is, and what the visitor should know whatever is done next. */
import { $ } from "./boxes.js";

const line = { rest: "", said: null, running: null };

/** Shows what holds: what runs, or else what was said last, or else how Python is. Called after what is said may hold no longer. */
export function reviewStatus() {
  const words = line.running?.() ?? (line.said?.holds() ? line.said.words() : line.rest);
  const shown = $("status").querySelector(".words");
  if (shown.textContent !== words) shown.textContent = words;
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

/** Says what runs, and counts the seconds, which aren't read aloud, until the function that it returns is called. @param {() => string} words */
export function running(words) {
  let seconds = 0;
  const shown = $("status").querySelector(".seconds");
  line.running = words;
  reviewStatus();
  const counting = setInterval(() => (shown.textContent = ` ${(seconds += 1)} s`), 1000);
  return () => {
    clearInterval(counting);
    shown.textContent = "";
    line.running = null;
  };
}

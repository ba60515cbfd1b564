/** What is said beside the title: how far the work is, and what the visitor should know whatever is done next. */
import { $, make } from "./boxes.js";

/** @param {string} words */
export const status = (words) => ($("status").textContent = words);

/** @param {string} words none remove it */
export function notice(words) {
  $("notice").textContent = words;
  $("notice").hidden = words === "";
}

/** Counts the seconds, which aren't read aloud, until the function that it returns is called. */
export function running() {
  let seconds = 0;
  const shown = make("span", { ariaHidden: "true" });
  $("status").replaceChildren("running …", shown);
  const counting = setInterval(() => (shown.textContent = ` ${(seconds += 1)} s`), 1000);
  return () => clearInterval(counting);
}

/** Pages in frames: each runs its own script there, and can reach neither this page nor anything else. The page of a comparison that the
 * visitor's Python has made runs none. */
import { $ } from "./boxes.js";
import { keyOf } from "./shown.js";

/** The addresses of pages that are no files, by their frames. */
const drawn = new Map();

/** In the place of what is shown, so that the browser's Back doesn't lead to it: it leads out of this page, as the visitor expects.
 * @param {string} frame @param {string} address an empty one shows nothing */
export function show(frame, address) {
  if (drawn.has(frame)) URL.revokeObjectURL(drawn.get(frame));
  drawn.delete(frame);
  $(frame).contentWindow.location.replace(address || "about:blank");
  $(frame).hidden = address === "";
}

/** @param {string} frame @param {string} html without scripts where the frame runs none: the browser would complain of each */
export function showPage(frame, html) {
  const text = $(frame).sandbox.contains("allow-scripts") ? html : html.replaceAll(/<script\b.*?<\/script>/gs, "");
  const address = URL.createObjectURL(new Blob([text], { type: "text/html" }));
  show(frame, address);
  drawn.set(frame, address);
}

/** Shows the pictures that a request was answered with; none removes them. */
export function drawIn(results, frame, page, asked) {
  if (page) results.set(frame, keyOf(asked));
  else results.clear(frame);
  if (page) showPage(frame, page);
  else show(frame, "");
}

/** For which request each shown result was made: one that the page would no longer make has a result that is marked as earlier. */
import { $, make } from "./boxes.js";

/** What decides on the result of a request, as a text to compare. @param {{request: object, missing?: string}} asked */
export const keyOf = ({ request, missing = "" }) => JSON.stringify([request, missing]);

/**
 * The places of results, each with the kind of request that it is asked for by. In `messages` a place has a line that says that it is
 * earlier, and which button asks again.
 *
 * @typedef {{kind: string, elements: string[], messages?: string}} Place
 * @param {Record<string, Place>} places by their names
 * @param {(kind: string) => {request: object, missing?: string} | null} now what would be asked for now; null for nothing
 */
export function shown(places, now) {
  const made = new Map();

  /** Whether a key is that of what would be asked for now. @param {string} kind @param {string} key */
  function holds(kind, key) {
    const wanted = now(kind);
    return wanted !== null && keyOf(wanted) === key;
  }

  const old = (name) => made.has(name) && !holds(places[name].kind, made.get(name));

  function label(id, words, on) {
    const [place, line] = [$(id), $(id).querySelector(".earlier")];
    if (on && !line && place.hasChildNodes()) place.prepend(make("p", { className: "earlier" }, words));
    if (!on) line?.remove();
  }

  /** Marks what is earlier, and nothing else. Called after whatever decides on a request has changed, or a result has come. */
  function review() {
    for (const [name, { elements, messages }] of Object.entries(places)) {
      const is = old(name);
      for (const id of elements) $(id).classList.toggle("old", is);
      if (messages !== undefined) for (const id of elements) label(id, messages, is);
    }
  }

  return { holds, old, review, set: (name, key) => made.set(name, key), clear: (name) => made.delete(name) };
}

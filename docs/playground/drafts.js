/** What the visitor has written, and what was chosen: there again after a reload, where the browser keeps anything for this page. */

const PLACE = "tpucc.playground";

/** What the visitor is told of how long texts are kept. */
export const UNKEPT = {
  "": "",
  tab: "The browser has no room for drafts, or must not keep them: what you write is lost when you close this tab. A link holds it.",
  page: "The browser keeps no drafts: it has no room for them, or must not. What you write is lost with this page; a link holds it.",
};

/** The result of `work`; null where the browser keeps nothing, or has no more room. */
function guarded(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

/**
 * Texts in place of originals, or of a link's texts, by what they are of. Each tab keeps its own over a reload; a new tab begins with what was written last in
 * any. What the browser doesn't keep lasts as long as the page.
 *
 * @param {(how: "" | "tab" | "page") => void} told hears for how long texts are kept, when that changes: as long as this tab, or as this page;
 *   "" is that the browser keeps them
 */
export function drafts(told) {
  const own = new Map();
  const key = (name) => `${PLACE} ${name}`;
  let lasting = "";

  /** A draft of this tab, null for an original; undefined where this tab has written neither. */
  function ofTab(name) {
    if (own.has(name)) return own.get(name);
    const kept = guarded(() => JSON.parse(sessionStorage.getItem(key(name))));
    return typeof kept?.text === "string" || kept?.text === null ? kept.text : undefined;
  }

  /** @param {string} name @returns {string | null} */
  function get(name) {
    const found = ofTab(name);
    return found === undefined ? guarded(() => localStorage.getItem(key(name))) : found;
  }

  function write(name, text) {
    if (text === null) localStorage.removeItem(key(name));
    else localStorage.setItem(key(name), text);
    return true;
  }

  /** @param {string} name @param {string | null} text null for none */
  function set(name, text) {
    if (get(name) === text) return;
    own.set(name, text);
    const inTab = guarded(() => sessionStorage.setItem(key(name), JSON.stringify({ text })) === undefined);
    const now = guarded(() => write(name, text)) ? "" : inTab ? "tab" : "page";
    if (now !== lasting) told(now);
    lasting = now;
  }

  return { get, set };
}

/** A short name of an address: 53 bits that depend on all of it, so that a long address isn't stored again and again. @param {string} address */
export function digest(address) {
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (let place = 0; place < address.length; place += 1) {
    one = Math.imul(one ^ address.charCodeAt(place), 2654435761);
    other = Math.imul(other ^ address.charCodeAt(place), 1597334677);
  }
  one = Math.imul(one ^ (one >>> 16), 2246822507) ^ Math.imul(other ^ (other >>> 13), 3266489909);
  other = Math.imul(other ^ (other >>> 16), 2246822507) ^ Math.imul(one ^ (one >>> 13), 3266489909);
  return (4294967296 * (2097151 & other) + (one >>> 0)).toString(36);
}

/** The object that a text is; null for none. */
function objectOf(text) {
  const found = guarded(() => JSON.parse(text));
  return typeof found === "object" ? found : null;
}

/** What is chosen in this tab of the browser, at each address. A new tab begins with what was chosen last in any, where no link is. */
export const visits = {
  /** @param {string} address the fragment @returns {object | null} */
  get: (address) => {
    const last = address === "" ? guarded(() => localStorage.getItem(`${PLACE} last`)) : null;
    return objectOf(guarded(() => sessionStorage.getItem(`${PLACE} at ${digest(address)}`))) ?? objectOf(last);
  },
  /** @param {string} address @param {object} choices */
  set: (address, choices) => {
    const text = JSON.stringify(choices);
    guarded(() => sessionStorage.setItem(`${PLACE} at ${digest(address)}`, text));
    if (address === "") guarded(() => localStorage.setItem(`${PLACE} last`, text));
  },
};

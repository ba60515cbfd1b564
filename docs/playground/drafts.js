/** What the visitor has written, and what was chosen: there again after a reload, where the browser keeps anything for this page. */

const PLACE = "tpucc.playground";

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
 * @param {() => void} refused is called once, when the browser doesn't keep a draft
 */
export function drafts(refused) {
  const own = new Map();
  const key = (name) => `${PLACE} ${name}`;
  let told = false;

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
    guarded(() => sessionStorage.setItem(key(name), JSON.stringify({ text })));
    if (guarded(() => write(name, text)) || told) return;
    told = true;
    refused();
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

/** What is chosen in this tab of the browser, at each address. */
export const visits = {
  /** @param {string} address @returns {object | null} */
  get: (address) => {
    const found = guarded(() => JSON.parse(sessionStorage.getItem(`${PLACE} at ${digest(address)}`)));
    return typeof found === "object" ? found : null;
  },
  /** @param {string} address @param {object} choices */
  set: (address, choices) => guarded(() => sessionStorage.setItem(`${PLACE} at ${digest(address)}`, JSON.stringify(choices))),
};

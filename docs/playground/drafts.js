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
 * Texts in place of originals, by what they are of. Each tab keeps its own over a reload; a new tab begins with what was written last in
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

const pair = (each) => Array.isArray(each) && each.length === 2 && each.every((word) => typeof word === "string");
const isVisit = (found) => found?.choices !== null && typeof found?.choices === "object" && Array.isArray(found.texts) && found.texts.every(pair);

/**
 * This tab of the browser at an address: what is chosen, and what has been written in place of a link's texts.
 *
 * @typedef {{choices: object, texts: [string, string][]}} Visit
 */
export const visits = {
  /** @param {string} address @returns {Visit | null} */
  get: (address) => {
    const found = guarded(() => JSON.parse(sessionStorage.getItem(PLACE)));
    return found?.address === address && isVisit(found) ? found : null;
  },
  /** @param {string} address @param {Visit} visit */
  set: (address, visit) => guarded(() => sessionStorage.setItem(PLACE, JSON.stringify({ address, ...visit }))),
};

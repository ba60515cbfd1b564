/** Permalinks: what is written, packed into the fragment of the address. No server ever sees a fragment. */

const WORD = "#play=";
const MOST = 1 << 20; // characters of an address
const LARGEST = 1 << 24; // octets of what it holds

/** A link that can't be made, or can't be read; its message says why. */
export class BadLink extends Error {}

const TOO_LARGE = "it is too large";

/** The octets of a stream. Fails where there are more than `LARGEST`: what is packed may be a thousandth of what comes out.
 * @param {ReadableStream} stream */
async function collected(stream) {
  let left = LARGEST;
  const counted = new TransformStream({
    transform(part, target) {
      left -= part.length;
      if (left < 0) target.error(new RangeError(TOO_LARGE));
      else target.enqueue(part);
    },
  });
  try {
    return new Uint8Array(await new Response(stream.pipeThrough(counted)).arrayBuffer());
  } catch (error) {
    throw left < 0 ? new BadLink(TOO_LARGE) : error; // who reads a stream hears another error than the stream's
  }
}

/** The fragment that holds a state. Fails with a `BadLink` where `unpacked` would refuse it. @param {object} state */
export async function packed(state) {
  const given = new Blob([JSON.stringify(state)]);
  if (given.size > LARGEST) throw new BadLink(TOO_LARGE);
  const octets = await collected(given.stream().pipeThrough(new CompressionStream("deflate-raw")));
  const text = btoa(Array.from(octets, (octet) => String.fromCharCode(octet)).join(""));
  const hash = WORD + text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (hash.length > MOST) throw new BadLink(TOO_LARGE);
  return hash;
}

/** What an address has packed. @param {string} hash */
async function inflated(hash) {
  if (!hash.startsWith(WORD) && !WORD.startsWith(hash)) throw new BadLink("it is none of this page");
  const text = atob(hash.slice(WORD.length).replaceAll("-", "+").replaceAll("_", "/"));
  const octets = Uint8Array.from(text, (character) => character.charCodeAt(0));
  const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await collected(stream)));
}

const CUT = "it is cut short or changed";

/** The state that an address holds; null when it has no fragment. Fails with a `BadLink` where it is damaged. @param {string} hash */
export async function unpacked(hash) {
  if (hash === "") return null;
  if (hash.length > MOST) throw new BadLink(TOO_LARGE);
  const state = await inflated(hash).catch((error) => {
    throw error instanceof BadLink ? error : new BadLink(CUT);
  });
  if (state === null || typeof state !== "object" || Array.isArray(state)) throw new BadLink("it holds nothing that was written");
  for (const [name, value] of Object.entries(state)) {
    if (typeof value !== "string" || !value.isWellFormed()) throw new BadLink(`its ${name.slice(0, 40)} is no text`);
  }
  return state;
}

/** The texts that a state has by these names; anything else in it, as in a link that somebody has made, has no effect. */
export const texts = (state, names) =>
  Object.fromEntries(names.filter((name) => Object.hasOwn(state, name) && typeof state[name] === "string").map((name) => [name, state[name]]));

/** Whether a control takes this value. */
export const choosable = (control, value) => !control.options || [...control.options].some((each) => each.value === value);

/** What a link names that this page hasn't, in words: `target tpu_v9`. @param {object} state @param {string[]} names those of controls */
export function unknown(state, names) {
  const held = Object.entries(texts(state, names)).map(([name, value]) => [document.getElementById(name), value]);
  const strange = held.filter(([control, value]) => control?.options && !choosable(control, value));
  return strange.map(([control, value]) => `${control.labels[0].firstChild.textContent.trim()} ${value.slice(0, 40) || "none"}`);
}

/** The texts of a link, by the items that it says they are of. @param {object} state @param {Record<string, {select: HTMLSelectElement,
 * from: object[], text: string}>} written @param {(list: object[], name: string) => object} named */
export function ofLink(state, written, named) {
  const found = new Map();
  for (const [kind, { select, from, text: name }] of Object.entries(written)) {
    const { [select.id]: wanted, [name]: text } = texts(state, [select.id, name]);
    if (text !== undefined) found.set(`${kind} ${named(from, wanted).name}`, text);
  }
  return found;
}

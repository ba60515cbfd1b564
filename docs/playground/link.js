/** Permalinks: what is written, packed into the fragment of the address. No server ever sees a fragment. */

const WORD = "#play=";
const MOST = 1 << 20;

/** @param {ReadableStream} stream */
const collected = async (stream) => new Uint8Array(await new Response(stream).arrayBuffer());

/** @param {object} state */
export async function packed(state) {
  const stream = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const octets = await collected(stream);
  const text = btoa(Array.from(octets, (octet) => String.fromCharCode(octet)).join(""));
  return WORD + text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The state that an address holds; null when it holds none, or when it is damaged. */
export async function unpacked(hash) {
  if (!hash.startsWith(WORD) || hash.length > MOST) return null;
  try {
    const text = atob(hash.slice(WORD.length).replaceAll("-", "+").replaceAll("_", "/"));
    const octets = Uint8Array.from(text, (character) => character.charCodeAt(0));
    const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const state = JSON.parse(new TextDecoder().decode(await collected(stream)));
    return typeof state === "object" ? state : null;
  } catch {
    return null;
  }
}

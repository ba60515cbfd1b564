/**
 * Python in a worker: loads Pyodide, numpy and msgspec, unpacks tpucc, and then answers one request after the other.
 *
 * The Python of a request may be a stranger's. It can't send anything: the worker has the page's policy, as it begins from a blob. It can't
 * answer in tpucc's place either, or change what the browser keeps: answers go through a port of this module's own, and what else leads out
 * of the worker is taken away before the first request.
 */

const PLACE = "/lib/python3.13/site-packages";
const WAYS_OUT = [
  "fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "EventSource", "WebTransport", "BroadcastChannel", "Worker", "SharedWorker",
  "caches", "CacheStorage", "indexedDB", "cookieStore", "StorageManager", "navigator", "importScripts", "postMessage", "close",
  "webkitRequestFileSystem", "webkitRequestFileSystemSync", "webkitResolveLocalFileSystemURL", "webkitResolveLocalFileSystemSyncURL",
];
const MODULES = ["js", "pyodide_js", "_pyodide_core"]; // what leads from Python to objects of JavaScript
const ANSWERED = `
from os import write
from tpucc.playground.engine import answered
lambda request: answered(request, lambda text: write(2, text.encode())).decode()`;
const MOST = 40_000; // octets of what is printed at one request that are told; tpucc keeps 10,000 characters
let left = MOST;
let answered = null;
let tell = null;

const say = (words) => tell({ loading: words });
const HERE = new URL(".", import.meta.url).href;
const lacking = (address, { status, statusText = "" }) => `${address.replace(HERE, "")} (${`${status} ${statusText}`.trim()})`;
const whole = (address) => new URL(address, import.meta.url).href;

const load = fetch; // before anything is put in its place

/** The octets of a file. Fails in words that name it. @param {string} address */
async function bytes(address) {
  const answer = await load(whole(address)).catch((error) => ({ status: error.message }));
  if (!answer.ok) throw new Error(lacking(address, answer));
  return answer.arrayBuffer();
}

/** What fails as soon as a file can't be had: Pyodide waits for some of them without an end. */
function missing() {
  return new Promise((_, reject) => {
    globalThis.fetch = async (...asked) => {
      const address = String(asked[0]?.url ?? asked[0]);
      const answer = await load(...asked).catch((error) => ({ ok: false, status: error.message }));
      if (!answer.ok) reject(new Error(lacking(address, answer)));
      return answer;
    };
  });
}

/** What tells the text that Python writes to its standard error: what the visitor's code prints, before there is an answer. */
function listener() {
  const text = new TextDecoder();
  return (octets) => {
    if (left > 0) tell({ printed: text.decode(octets.slice(0, left), { stream: true }) });
    left -= octets.length;
    return octets.length;
  };
}

/** Answers a request. */
function give(request) {
  left = MOST;
  tell({ answer: answered(request) });
}

/** Takes away what leads out of the worker, and keeps code that is there from finding anything else by its names. */
function shut(python) {
  python.runPython(`import sys\nfor name in ${JSON.stringify(MODULES)}: sys.modules[name] = None`);
  for (let at = globalThis; at; at = Object.getPrototypeOf(at)) {
    for (const name of WAYS_OUT) delete at[name];
    if (at !== globalThis) Object.preventExtensions(at);
  }
  for (const each of [MessageEvent, MessagePort, Event, EventTarget, Function]) Object.freeze(each.prototype);
}

/** The memory of a Python that has started. Fails where it can't be had, or is of another Pyodide than the one at `base`. */
async function memory({ snapshot, wasm }, base) {
  const packed = new Response(await bytes(snapshot)).body;
  if (wasm) {
    const found = new Uint8Array(await crypto.subtle.digest("SHA-256", await bytes(`${base}pyodide.asm.wasm`)));
    if (Array.from(found, (octet) => octet.toString(16).padStart(2, "0")).join("") !== wasm) throw new Error("it has other code");
  }
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** Pyodide, from the memory of one that has started, or else from its beginning. */
async function pyodide(config, base) {
  const options = { indexURL: base, packages: config.packages, jsglobals: {} };
  const kept = config.snapshot ? memory(config, base) : null; // while Pyodide is fetched
  kept?.catch(() => {}); // heard below
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  try {
    if (kept) return await loadPyodide({ ...options, "_loadSnapshot": await kept });
  } catch (error) {
    say(`Python from its beginning: ${error}`);
  }
  return loadPyodide(options);
}

/** @param {{pyodide: string, packages: string[], archive: string, snapshot: string, wasm: string}} config */
async function begin(config) {
  const after = () => `${(performance.now() / 1000).toFixed(1)} s`;
  const base = whole(config.pyodide);
  const lost = missing();
  lost.catch(() => {}); // heard below
  const archive = bytes(config.archive); // while Pyodide is fetched and compiled
  archive.catch(() => {}); // heard below
  say(`loads Python, from ${base}`);
  const python = await Promise.race([pyodide(config, base), lost]);
  const there = `Python after ${after()}`;
  say(`${there}; loads tpucc, from ${config.archive}`);
  unpack(python, await archive, config.archive);
  python.setStderr({ write: listener() });
  answered = python.runPython(ANSWERED);
  say(`${there}, from ${base}; tpucc after ${after()}, from ${config.archive}`);
  shut(python);
  tell({ ready: true });
}

/** Puts tpucc where Python looks for it. Fails in words that name the file. */
function unpack(python, archive, name) {
  try {
    python.unpackArchive(archive, "zip", { extractDir: PLACE });
  } catch (error) {
    throw new Error(`${name} can't be unpacked: ${saidBy(error)}`, { cause: error });
  }
}

/** What the text of an error says, in a line: the last one, as that of a traceback. After a fault of Python's own, reading it may fail, too. */
function saidBy(error) {
  try {
    return String(error.message).trim().split("\n").at(-1).slice(0, 300);
  } catch {
    return "";
  }
}

/** Answers a request, or has Python begin. What isn't answered has broken Python: its engine catches all errors. @param {() => unknown} work */
async function handle(work) {
  try {
    await work();
  } catch (error) {
    tell({ failed: saidBy(error) });
  }
}

/** The first message brings the port that all others go through: the first of these has the page's configuration, the others are requests. */
addEventListener("message", ({ ports: [port] }) => {
  tell = port.postMessage.bind(port);
  port.addEventListener("message", ({ data: { config } }) => {
    handle(() => begin(config));
    port.addEventListener("message", ({ data: { request } }) => handle(() => give(request)));
  }, { once: true });
  port.start();
}, { once: true });

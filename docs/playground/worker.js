/** Python in a worker: loads Pyodide, numpy, msgspec and Graphviz, unpacks tpucc, and then answers one request after the other. */

const PLACE = "/lib/python3.13/site-packages";
let answered = null;

const say = (words) => postMessage({ loading: words });

/** The octets of a file. Fails in words that name it. @param {string} address */
async function bytes(address) {
  const answer = await fetch(address).catch((error) => ({ status: error.message }));
  if (!answer.ok) throw new Error(`${address} (${answer.status})`);
  return answer.arrayBuffer();
}

/** Graphviz in WebAssembly; null where the page has none. Once it is there, it answers at once, as Python's calls of it must be. */
async function layouter(address) {
  if (!address) return null;
  try {
    const { instance } = await import(new URL(address, location.href).href);
    return await instance();
  } catch (error) {
    say(`no Graphviz: ${error}`);
    return null;
  }
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
  const options = { indexURL: base, packages: config.packages };
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

/** @param {{pyodide: string, packages: string[], archive: string, snapshot: string, wasm: string, graphviz: string}} config */
async function load(config) {
  const after = () => `${(performance.now() / 1000).toFixed(1)} s`;
  const base = new URL(config.pyodide, location.href).href;
  const archive = bytes(config.archive); // while Pyodide is fetched and compiled
  archive.catch(() => {}); // heard below
  const drawing = layouter(config.graphviz);
  say(`loads Python, from ${base}`);
  const python = await pyodide(config, base);
  const there = `Python after ${after()}`;
  say(`${there}; loads tpucc, from ${config.archive}`);
  python.unpackArchive(await archive, "zip", { extractDir: PLACE });
  answered = python.runPython("from tpucc.playground.engine import answered\nlambda request: answered(request).decode()");
  const graphviz = await drawing;
  if (graphviz) {
    const use = python.runPython("from tpucc.viz.diagrams.render import use\nuse");
    use(`Graphviz ${graphviz.graphvizVersion} in WebAssembly`, (dot) => graphviz.renderString(dot, { format: "json0" }));
  }
  say(`${there}, from ${base}; tpucc after ${after()}, from ${config.archive}`);
  postMessage({ ready: true });
}

/** What the text of an error says, in a line. After a fault of Python's own, reading it may fail, too. */
function saidBy(error) {
  try {
    return String(error.message).split("\n", 1)[0].slice(0, 300);
  } catch {
    return "";
  }
}

/** @param {{config?: object, request?: string}} asked A request that isn't answered has broken Python: its engine catches all errors. */
async function handle({ config, request }) {
  try {
    if (config) await load(config);
    else postMessage({ answer: answered(request) });
  } catch (error) {
    postMessage({ failed: saidBy(error) });
  }
}

addEventListener("message", ({ data }) => handle(data));

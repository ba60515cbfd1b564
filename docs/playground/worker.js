/** Python in a worker: loads Pyodide, numpy, msgspec and Graphviz, unpacks tpucc, and then answers one request after the other. */

const PLACE = "/lib/python3.13/site-packages";
let answered = null;

const say = (words) => postMessage({ loading: words });
const bytes = async (address) => {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.arrayBuffer();
};

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

/** @param {{pyodide: string, packages: string[], archive: string, graphviz: string}} config */
async function load(config) {
  const after = () => `${(performance.now() / 1000).toFixed(1)} s`;
  const base = new URL(config.pyodide, location.href).href;
  const archive = bytes(config.archive); // while Pyodide is fetched and compiled
  const drawing = layouter(config.graphviz);
  say(`Python, from ${base}`);
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: base, packages: config.packages });
  const there = `Python after ${after()}`;
  say(`${there}; tpucc, from ${config.archive}`);
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

async function handle({ config, request }) {
  try {
    if (config) await load(config);
    else postMessage({ answer: answered(request) });
  } catch (error) {
    postMessage({ failed: String(error).slice(-2000) });
  }
}

addEventListener("message", ({ data }) => handle(data));

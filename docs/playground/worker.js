/** Python in a worker: loads Pyodide, numpy and msgspec, unpacks tpucc, and then answers one request after the other. */

const PLACE = "/lib/python3.13/site-packages";
let answered = null;

const say = (words) => postMessage({ loading: words });
const bytes = async (address) => {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.arrayBuffer();
};

/** @param {{pyodide: string, packages: string[], archive: string}} config */
async function load(config) {
  const after = () => `${(performance.now() / 1000).toFixed(1)} s`;
  const base = new URL(config.pyodide, location.href).href;
  const archive = bytes(config.archive); // while Pyodide is fetched and compiled
  say(`Python, from ${base}`);
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const python = await loadPyodide({ indexURL: base, packages: config.packages });
  const there = `Python after ${after()}`;
  say(`${there}; tpucc, from ${config.archive}`);
  python.unpackArchive(await archive, "zip", { extractDir: PLACE });
  answered = python.runPython("from tpucc.playground.engine import answered\nlambda request: answered(request).decode()");
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

/** Who answers: Python in a worker of this browser, or the local server that this page comes from. Requests and answers are JSON. */

/**
 * @typedef {{ask: (request: object) => Promise<object>, stop: () => unknown, start: () => Promise<void>}} Engine
 * `ask` fails with a `Stopped` when `stop` comes before the answer.
 */
export class Stopped extends Error {}

/**
 * @param {{engine: string}} config what the build, or the local server, says of itself
 * @param {(words: string) => void} told hears what is being loaded
 * @returns {Engine}
 */
export function engine(config, told) {
  return config.engine === "local" ? local() : inWorker(config, told);
}

/** One worker at a time; to stop is to end it, and begin another, which loads from the browser's caches. */
function inWorker(config, told) {
  let worker = null;
  let ready = null;
  let waiting = null;

  function begin() {
    const own = new Worker("worker.js", { type: "module" });
    worker = own;
    ready = new Promise((resolve, reject) => {
      function fail(words) {
        waiting?.reject(new Error(words));
        reject(new Error(words));
      }
      own.addEventListener("error", (event) => fail(event.message ?? "the worker can't be loaded"));
      own.addEventListener("message", ({ data }) => {
        if (data.loading) told(data.loading);
        if (data.ready) resolve();
        if (data.failed) fail(data.failed);
        if (data.answer) waiting?.resolve(JSON.parse(data.answer));
      });
      own.postMessage({ config });
    });
    ready.catch(() => (ready = null)); // the next request tries again
    return ready;
  }

  const start = () => ready ?? begin();

  function ask(request) {
    const answer = new Promise((resolve, reject) => {
      waiting = { resolve, reject };
      start().then(() => worker.postMessage({ request: JSON.stringify(request) }), reject);
    });
    return answer.finally(() => (waiting = null));
  }

  function stop() {
    worker?.terminate();
    waiting?.reject(new Stopped());
    begin();
  }

  return { start, ask, stop };
}

/** The server of `python -m tpucc.playground`. */
function local() {
  let asked = null;
  const post = (place, body, signal) => fetch(place, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });

  async function ask(request) {
    asked = new AbortController();
    const { signal } = asked;
    try {
      const answer = await post("engine", JSON.stringify(request), signal);
      if (!answer.ok) throw new Error(await answer.text());
      return await answer.json();
    } catch (error) {
      if (signal.aborted) throw new Stopped();
      throw error;
    }
  }

  async function stop() {
    asked?.abort();
    await post("stop", "{}");
  }

  return { start: async () => {}, ask, stop };
}

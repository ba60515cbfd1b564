/** Who answers: Python in a worker of this browser, or the local server that this page comes from. Requests and answers are JSON. */

/**
 * @typedef {{ask: (request: object) => Promise<object>, stop: () => unknown, start: () => Promise<void>}} Engine
 * `ask` fails with a `Stopped` when `stop` comes before the answer, and with a `Broken` when Python breaks down.
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

/** Python itself has broken down at a request; another begins. */
export class Broken extends Error {}

/** Ends when Python is there in a worker; what it then says is heard by `told`, `answer` and `broken`. */
function loading(worker, config, { told, answer, broken }) {
  return new Promise((resolve, reject) => {
    let loaded = false;
    const failed = (words) => (loaded ? broken() : reject(new Error(words)));
    worker.addEventListener("error", (event) => failed(event.message ?? "worker.js"));
    worker.addEventListener("message", ({ data }) => {
      if (data.loading) told(data.loading);
      if (data.ready) resolve((loaded = true));
      if ("failed" in data) failed(data.failed);
      if (data.answer) answer(data.answer);
    });
    worker.postMessage({ config });
  });
}

/** One worker at a time; to stop is to end it, and begin another, which loads from the browser's caches. So is what follows a break-down. */
function inWorker(config, told) {
  let worker = null;
  let ready = null;
  let waiting = null;

  const heard = {
    told,
    answer: (text) => waiting?.resolve(JSON.parse(text)),
    broken() {
      worker.terminate();
      waiting?.reject(new Broken());
      begin();
    },
  };

  /** Begins a worker; where it can't be loaded, the next request tries again. */
  function begin() {
    const own = new Worker("worker.js", { type: "module" });
    worker = own;
    ready = loading(own, config, heard).catch((error) => {
      own.terminate();
      told(`Python isn't loaded: ${error.message}`);
      ready = null;
      throw new Error(`Python can't be loaded: ${error.message}; reload the page to try again`);
    });
    ready.catch(() => {}); // who asks hears of it
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

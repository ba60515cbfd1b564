/** Who answers: Python in a worker of this browser, or the local server that this page comes from. Requests and answers are JSON. */

/**
 * @typedef {{ask: (begin: () => object) => Promise<object>, stop: () => unknown, start: () => Promise<void>, startup: () => number}} Engine
 * `ask` has `begin` give the request when Python is there. It fails with a `Stopped` when `stop` comes before the answer, and with a `Broken`
 * when Python breaks down. `startup` is how many milliseconds Python has taken to be there.
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

/** How many milliseconds Python has taken to be there in a worker, once it is; what it then says is heard by `told`, `answer` and `broken`, as
 * long as it is the worker of `current`: what one says that has been ended may still arrive, and is about no request of the next one's. */
function loading({ worker, port }, config, { told, answer, broken, current }) {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    let loaded = false;
    function failed(words) {
      if (current() !== worker) return undefined;
      if (loaded) return broken();
      told(`Python isn't loaded: ${words}`);
      return reject(new Error(`Python can't be loaded: ${words}; reload the page to try again`));
    }
    worker.addEventListener("error", (event) => failed(event.message ?? "worker.js"));
    port.addEventListener("message", ({ data }) => {
      if (current() !== worker) return;
      if (data.loading) told(data.loading);
      loaded ||= data.ready === true;
      if (data.ready) resolve(performance.now() - begun);
      if ("failed" in data) failed(data.failed);
      if (data.answer) answer(data.answer);
    });
    port.start();
    port.postMessage({ config });
  });
}

/** A worker with this page's policy, which one from an address hasn't, and the port through which it hears and answers. */
function started() {
  const script = URL.createObjectURL(new Blob([`import ${JSON.stringify(new URL("worker.js", import.meta.url))};`], { type: "text/javascript" }));
  const worker = new Worker(script, { type: "module" });
  const { port1, port2 } = new MessageChannel();
  worker.postMessage(null, [port2]);
  return { worker, port: port1 };
}

/** Gives promises in the place of others: who waits for one that never comes, as its worker was ended, waits for the next. */
function following() {
  let follow = null;
  return (given) => {
    const before = follow;
    const own = new Promise((resolve, reject) => {
      follow = resolve;
      given.then(resolve, reject);
    });
    before?.(own);
    own.catch(() => {}); // who asks hears of it
    return own;
  };
}

/** One worker at a time; to stop is to end it, and begin another, which loads from the browser's caches. So is what follows a break-down. */
function inWorker(config, told) {
  let [worker, port, ready] = [null, null, null];
  let [waiting, startup] = [null, 0];
  const next = following();

  const heard = {
    told,
    current: () => worker,
    answer: (text) => waiting?.resolve(JSON.parse(text)),
    broken() {
      worker.terminate();
      waiting?.reject(new Broken());
      begin();
    },
  };

  /** Begins a worker; where it can't be loaded, the next request tries again. */
  function begin() {
    const own = started();
    ({ worker, port } = own);
    const loaded = loading(own, config, heard).then((taken) => (startup = taken), (error) => {
      own.worker.terminate();
      ready = null;
      throw error;
    });
    return (ready = next(loaded));
  }

  const start = () => ready ?? begin();

  function ask(given) {
    const own = {};
    const answer = new Promise((resolve, reject) => Object.assign(own, { resolve, reject }));
    waiting = own;
    start().then(() => waiting === own && port.postMessage({ request: JSON.stringify(given()) })).catch(own.reject);
    return answer.finally(() => waiting === own && (waiting = null));
  }

  function stop() {
    worker?.terminate();
    waiting?.reject(new Stopped());
    begin();
  }

  return { start, ask, stop, startup: () => startup };
}

/** The server of `python -m tpucc.playground`. */
function local() {
  let asked = null;
  let stopping = null;
  const post = (place, body, signal) => fetch(place, { method: "POST", headers: { "Content-Type": "application/json" }, body, signal });

  async function ask(given) {
    asked = new AbortController();
    const { signal } = asked;
    try {
      await stopping; // it would end this, too
      const answer = await post("engine", JSON.stringify(given()), signal);
      if (!answer.ok) throw new Error(await answer.text());
      return await answer.json();
    } catch (error) {
      if (signal.aborted) throw new Stopped();
      throw error;
    }
  }

  function stop() {
    asked?.abort();
    stopping = post("stop", "{}").catch(() => {}); // who asks next hears of a server that is gone
  }

  return { start: async () => {}, ask, stop, startup: () => 0 };
}

/** Who answers: Python in a worker of this browser, or the local server that this page comes from. Requests and answers are JSON. */
import { modelIn } from "./answers.js";

/**
 * @typedef {{ask: (begin: () => object) => Promise<object>, stop: () => unknown, start: () => Promise<void>, startup: () => number}} Engine
 * `ask` has `begin` give the request when Python is there. It fails with a `Stopped` when `stop` comes before the answer, and with a `Broken`
 * when Python breaks down. `startup` is how many milliseconds Python has taken to be there.
 */
export class Stopped extends Error {
  /** @param {string} printed what the visitor's Python had printed by then */
  constructor(printed = "") {
    super("stopped");
    this.printed = printed;
  }
}

/** Python itself has broken down at a request; another begins. */
export class Broken extends Error {}

/** How many milliseconds Python has taken to be there in a worker, once it is; what it then says is heard by `told`, `answer` and `broken`, as
 * long as it is the worker of `current`: what one says that has been ended may still arrive, and is about no request of the next one's. */
function loading({ worker, port }, config, { told, answer, printed, broken, current }) {
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
      if (data.printed) printed(data.printed);
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

/** The visitor's Python that a request has, as text; null for none. */
function pythonOf(request) {
  const { passes, stages } = modelIn(request);
  return passes || stages ? JSON.stringify([passes, stages]) : null;
}

/**
 * One worker at a time; to stop is to end it, and begin another, which loads from the browser's caches. So is what follows a break-down. A
 * worker that has run the visitor's Python answers no request but those with the same: it could have changed what answers them.
 */
class Python {
  #config;
  #told;
  #current = null;
  #ready = null;
  #waiting = null;
  #startup = 0;
  #ran = null; // the visitor's Python that this worker has run
  #next = following();

  constructor(config, told) {
    [this.#config, this.#told] = [config, told];
  }

  start = () => this.#ready ?? this.#begin();
  startup = () => this.#startup;

  ask = (given) => {
    const own = { printed: "" };
    const answer = new Promise((resolve, reject) => Object.assign(own, { resolve, reject }));
    this.#waiting = own;
    this.start().then(() => this.#send(own, given)).catch(own.reject);
    return answer.finally(() => {
      if (this.#waiting === own) this.#waiting = null;
      setTimeout(() => this.#waiting === null && this.#ran !== null && this.#renew());
    });
  };

  stop = () => {
    this.#current?.worker.terminate();
    this.#waiting?.reject(new Stopped(this.#waiting.printed));
    this.#begin();
  };

  /** Gives a request to a worker that may answer it, if it is still waited for. */
  async #send(own, given) {
    if (this.#waiting !== own) return;
    const request = given();
    const python = pythonOf(request);
    if (this.#ran !== null && this.#ran !== python) await this.#renew();
    if (this.#waiting !== own) return; // it was stopped in the meantime
    this.#ran = python;
    this.#current.port.postMessage({ request: JSON.stringify(request) });
  }

  /** Begins a worker; where it can't be loaded, the next request tries again. */
  #begin() {
    const own = started();
    [this.#current, this.#ran] = [own, null];
    const heard = {
      told: this.#told,
      current: () => this.#current.worker,
      answer: (text) => this.#waiting?.resolve(JSON.parse(text)),
      printed: (text) => {
        if (this.#waiting) this.#waiting.printed += text;
      },
      broken: () => this.#broken(),
    };
    const loaded = loading(own, this.#config, heard).then((taken) => (this.#startup = taken), (error) => {
      own.worker.terminate();
      this.#ready = null;
      throw error;
    });
    return (this.#ready = this.#next(loaded));
  }

  #renew() {
    this.#current.worker.terminate();
    return this.#begin();
  }

  #broken() {
    this.#current.worker.terminate();
    this.#waiting?.reject(new Broken());
    this.#begin();
  }
}

/** The server of `python -m tpucc.playground`. */
function local() {
  let asked = null;
  let name = "";
  let stopping = null;
  const post = (place, own, body, signal) => fetch(place, { method: "POST", headers: { "Content-Type": "application/json", "Request-Name": own }, body, signal });

  async function ask(given) {
    asked = new AbortController();
    const own = (name = crypto.randomUUID()); // to stop it, even if the server hears of that first
    const { signal } = asked;
    try {
      await stopping; // it would end this, too
      const answer = await post("engine", own, JSON.stringify(given()), signal);
      if (!answer.ok) throw new Error(await answer.text());
      return await answer.json();
    } catch (error) {
      if (signal.aborted) throw new Stopped((await stopping)?.printed);
      throw error;
    }
  }

  function stop() {
    asked?.abort();
    stopping = post("stop", name, "{}").then((answer) => answer.json()).catch(() => {}); // who asks next hears of a server that is gone
  }

  return { start: async () => {}, ask, stop, startup: () => 0 };
}

/**
 * @param {{engine: string}} config what the build, or the local server, says of itself
 * @param {(words: string) => void} told hears what is being loaded
 * @returns {Engine}
 */
export function engine(config, told) {
  return config.engine === "local" ? local() : new Python(config, told);
}

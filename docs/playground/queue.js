/** Requests of the page, answered one after the other. Of each kind the newest waits, and no other. */
import { keyOf } from "./shown.js";

const same = (one, other) => keyOf(one) === keyOf(other);

/**
 * What is asked for: the kind of the request, the request, and the turn of its tab. `missing` says what can't be asked for. `since` is when
 * Python was given it, in milliseconds; `late` is that it has given way to a newer text.
 *
 * @typedef {{kind: string, request: object, missing?: string, turn: number, since?: number, late?: boolean}} Asked
 */

/**
 * Only a model is asked for without a press of a button, after it has been edited. So it is what still waits after a stop, and what takes
 * the place of an earlier text that is being compiled for longer than `patience`.
 */
export class Queue {
  #answering;
  #heard;
  #patience;
  #waiting = new Map();
  #current = null;
  #timer = 0;

  /** Whether anything is being answered. */
  busy = false;

  /**
   * @param {import("./engine.js").Engine} answering
   * @param {{before: Promise<void>, busy: (on: boolean) => void, begun: (asked: Asked) => void, answered: (asked: Asked, answer: object) => void,
   *   failed: (asked: Asked, error: Error) => void}} heard
   * @param {() => number} patience in milliseconds
   */
  constructor(answering, heard, patience) {
    [this.#answering, this.#heard, this.#patience] = [answering, heard, patience];
  }

  /** @param {Asked} asked */
  ask(asked) {
    this.#waiting.set(asked.kind, asked);
    const current = this.#current;
    if (current?.kind === asked.kind && current.turn === asked.turn && same(current, asked)) this.drop(asked.kind);
    this.#giveWay();
    if (!this.busy) this.#answerAll();
  }

  /** Whether a request of a kind waits. @param {string} kind */
  has(kind) {
    return this.#waiting.has(kind);
  }

  /** Leaves out what waits of a kind. @param {string} kind */
  drop(kind) {
    this.#waiting.delete(kind);
  }

  /** Ends what runs. A newer text of the model is compiled then; nothing else that waits is run, as it may be as endless. Returns the kinds of
   * what isn't. */
  stop() {
    const ended = this.#current;
    const dropped = [...this.#waiting].filter(([kind, asked]) => kind !== "model" || (ended && same(ended, asked))).map(([kind]) => kind);
    for (const kind of dropped) this.drop(kind);
    this.#answering.stop();
    return dropped.filter((kind) => kind !== ended?.kind && kind !== "difference");
  }

  /** Ends the run of an earlier text, now or when it has had its time. */
  #giveWay() {
    const current = this.#current;
    clearTimeout(this.#timer);
    if (current?.kind !== "model" || !this.has("model")) return;
    const left = current.since + this.#patience() - performance.now();
    if (left > 0) {
      this.#timer = setTimeout(() => this.#giveWay(), left);
      return;
    }
    current.late = true;
    this.#answering.stop();
  }

  async #answerAll() {
    this.busy = true;
    this.#heard.busy(true);
    await this.#heard.before;
    while (this.#waiting.size > 0) {
      const [[kind, asked]] = this.#waiting;
      this.drop(kind);
      await this.#answer(asked);
    }
    this.busy = false;
    this.#heard.busy(false);
  }

  async #answer(asked) {
    try {
      const found = await this.#answering.ask(() => this.#begin(asked));
      this.#heard.answered(this.#current, found);
    } catch (error) {
      this.#heard.failed(this.#current ?? asked, error);
    } finally {
      clearTimeout(this.#timer);
      this.#current = null;
    }
  }

  /** What is asked once Python is there: the newest of the kind. */
  #begin(asked) {
    this.#current = { ...(this.#waiting.get(asked.kind) ?? asked), since: performance.now() };
    this.drop(asked.kind);
    this.#heard.begun(this.#current);
    return this.#current.request;
  }
}

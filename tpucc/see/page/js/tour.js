/**
 * A tour of a minute: it follows the longest wait of this program to what is waited for. It comes by itself on the first visit, unless the
 * address asks for something. Its card stands beside what it speaks of.
 */
const tour = (() => {
  const KEY = "tpucc.tour";

  /** The longest wait of the matrix unit, and the activity that takes most of its time; null where it never waits. */
  function longestWait() {
    const { waits } = model;
    const lengths = Array.from(waits.start, (from, index) => waits.end[index] - from);
    if (!lengths.length) return null;
    const at = lengths.indexOf(lengths.reduce((most, length) => Math.max(most, length)));
    const [from, to, before] = [waits.start[at], waits.end[at], waits.instruction[at]];
    const meanwhile = (part) => Math.min(part.end, to) - Math.max(part.start, from);
    const [longest] = retiming.pathTo(before).filter((part) => meanwhile(part) > 0).sort((a, b) => meanwhile(b) - meanwhile(a));
    return { from, to, before, root: waits.roots[waits.root[at]].root, longest };
  }

  const instruction = (id) => ({ kind: "instruction", id });

  /** The two steps of the longest wait. */
  function ofWait({ from, to, before, root, longest }) {
    const waits = `The hatching ${words.during(from, to)} is the longest wait of the matrix unit, before instruction ${words.number(before)} of ${model.layers[model.code.layer[before]].name}. As the legend says, it waits for ${root}.`;
    const found = [{ subject: "#units", title: "A wait", text: waits, held: instruction(before) }];
    if (!longest) return found;
    const works = `Meanwhile instruction ${words.number(longest.instruction)} is at work, ${words.during(longest.start, longest.end)}: it ${model.said(longest.instruction)}. The critical path (c) draws all such dependences.`;
    return [...found, { subject: "#units", title: "What it waits for", text: works, held: instruction(longest.instruction) }];
  }

  /** Each step: what it speaks of, what it says, and the view and the selection that it shows. */
  function planned() {
    const wait = longestWait();
    const waits = wait ? ofWait(wait) : [];
    const held = waits.at(-1)?.held ?? null;
    return [
      { subject: ".peak", title: "The answer first", text: "How much of the array's peak does the model's work, and where the rest went: pale are cells without weights, hatching is waiting. Below stand the times, and what to try." },
      ...waits,
      { subject: "#inspector", title: "The panel", text: "What is held, what it costs, what it waits for, and links to all that belongs to it. Click anything to hold it; Esc lets go.", held },
      { subject: "#source", title: "The source", text: "The lines that it came from light up, here and in every view. The bars beside the lines are their shares of the cycles; a hollow one, in a def, is the sum of all calls.", held },
      { subject: "#view-whatif", title: "What if", text: "What would be gained with twice the bandwidth, or another clock: the page times the same program again, to the cycle.", view: "whatif", held },
      { subject: "#keys", title: "The rest", text: "The other views stand under the question that each answers. Search finds lines, layers, buffers and instructions, and this button lists the keys. The address keeps the view and what is held." },
    ];
  }

  const opener = document.getElementById("tour");
  const [title, text, count] = [dom.make("h2", { id: "tour-title" }), dom.make("p", { id: "tour-text" }), dom.make("span", { class: "soft" })];
  const back = dom.make("button", { click: () => go(step - 1) }, "back");
  const next = dom.make("button", { click: () => go(step + 1) }, "next");
  const bar = dom.make("div", { class: "bar" }, count, dom.make("button", { click: () => close() }, "skip"), back, next);
  const card = dom.make("dialog", { class: "tour", "aria-labelledby": "tour-title", "aria-describedby": "tour-text", keydown: press }, title, text, bar);
  let [steps, step] = [[], 0];
  let before = {};

  const remembered = () => {
    try {
      return localStorage.getItem(KEY) !== null;
    } catch {
      return true; // where nothing can be remembered, it would come each time
    }
  };

  function remember() {
    try {
      localStorage.setItem(KEY, "seen");
    } catch {
      // it is still one click away
    }
  }

  /** Marks one part of the page, or none. */
  function mark(chosen) {
    for (const { subject } of steps) document.querySelector(subject).classList.toggle("toured", subject === chosen);
  }

  function go(number) {
    if (number >= steps.length) {
      close();
      return;
    }
    step = Math.max(0, number);
    const { subject, title: name, text: said, view = "summary", held = null } = steps[step];
    [title.textContent, text.textContent, count.textContent] = [name, said, `${step + 1} of ${steps.length}`];
    back.disabled = step === 0;
    next.textContent = step === steps.length - 1 ? "done" : "next";
    views.show(view);
    selection.hold(held, "tour");
    mark(subject);
    document.querySelector(subject).scrollIntoView({ block: "nearest" });
    settle();
    next.focus({ preventScroll: true });
  }

  /** Where the card stands in this step, in a window of this size. */
  function settle() {
    if (!card.open) return;
    const subject = document.querySelector(steps[step].subject);
    place((subject.closest("#time") ?? subject).getBoundingClientRect()); // the legend of the timeline stands above it
  }

  /** Beside what it speaks of: to the right, to the left, below, above; in a corner where there is no room beside it. */
  function place({ left, right, top, bottom }) {
    const { width, height } = card.getBoundingClientRect();
    const [most, low] = [window.innerWidth - width - 4, window.innerHeight - height - 4];
    const beside = [[right + 8, top + 24, right + 8 <= most], [left - width - 8, top + 24, left - width - 8 >= 0], [left + 24, bottom + 8, bottom + 8 <= low], [left + 24, top - height - 8, top - height - 8 >= 0], [most, low, true]];
    const [x, y] = beside.find(([, , fits]) => fits);
    card.style.left = `${Math.max(0, Math.min(x, most))}px`;
    card.style.top = `${Math.max(0, Math.min(y, low))}px`;
  }

  function open() {
    if (!card.open) {
      card.show();
      [steps, before] = [planned(), { view: views.current(), held: selection.held() }];
    }
    remember();
    go(0);
  }

  /** What was shown and held before is again. */
  function close() {
    mark("");
    card.close();
    views.show(before.view);
    selection.hold(before.held);
    opener.focus({ preventScroll: true });
  }

  function press(event) {
    const keys = { Escape: close, ArrowRight: () => go(step + 1), ArrowLeft: () => go(step - 1) };
    if (!Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  }

  /** Once the page is whole: `tpucc watch` may have put errors in place of the source, and then there is no tour. */
  function offer(asked) {
    opener.hidden = document.getElementById("source").hidden;
    if (!opener.hidden && !asked.view && !asked.wanted && !remembered()) open();
  }

  /** `asked` is what the address asks for. */
  function start(asked) {
    document.body.append(card);
    opener.addEventListener("click", open);
    window.addEventListener("resize", settle);
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => offer(asked));
    else offer(asked);
  }

  return { start };
})();

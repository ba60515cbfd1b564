/** A tour of a minute: what stands where, in steps. It comes by itself on the first visit, unless the address asks for something. */
const tour = (() => {
  const KEY = "tpucc.tour";
  const STEPS = [
    ["#source", "The source", "The model as it was written. The bars beside the lines are their shares of the cycles; a hollow one, in a def, is the sum of all calls. Point at a line: everything that it became lights up, in all views."],
    ["#views", "The views", "One program in many pictures, each under the question that it answers: where its time goes, what it is, how it runs, and whether it is right. A box with a double outline opens by a double click."],
    ["#inspector", "The panel", "Click anything to hold it. Here stands what it is, what it costs, what it waits for, and links to all that belongs to it. Esc lets go."],
    ["#timeline", "The timeline", "What each unit of the machine does in each cycle. Hatching is waiting, and the legend says for what; the critical path shows what the time depends on. The wheel zooms, and dragging moves."],
    ["#buffer", "The unified buffer", "Which buffer has which rows, over the same time. The bar at the left is the whole buffer, and its filled part the most that the program takes."],
    ["#search", "Search", "Finds lines, layers, buffers and instructions by their text."],
    ["#keys", "The keys", "All of it works without a mouse, and this button lists the keys. The address keeps the view and what is held, so that it can be sent to somebody."],
  ];
  const opener = document.getElementById("tour");
  const [title, text, count] = [dom.make("h2", { id: "tour-title" }), dom.make("p", { id: "tour-text" }), dom.make("span", { class: "soft" })];
  const back = dom.make("button", { click: () => go(step - 1) }, "back");
  const next = dom.make("button", { click: () => go(step + 1) }, "next");
  const bar = dom.make("div", { class: "bar" }, count, dom.make("button", { click: () => close() }, "skip"), back, next);
  const card = dom.make("dialog", { class: "tour", "aria-labelledby": "tour-title", "aria-describedby": "tour-text", keydown: press }, title, text, bar);
  let step = 0;

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
    for (const [selector] of STEPS) document.querySelector(selector).classList.toggle("toured", selector === chosen);
  }

  function go(number) {
    if (number >= STEPS.length) {
      close();
      return;
    }
    step = Math.max(0, number);
    const [selector, name, said] = STEPS[step];
    [title.textContent, text.textContent, count.textContent] = [name, said, `${step + 1} of ${STEPS.length}`];
    back.disabled = step === 0;
    next.textContent = step === STEPS.length - 1 ? "done" : "next";
    mark(selector);
    document.querySelector(selector).scrollIntoView({ block: "nearest" });
    settle();
    next.focus({ preventScroll: true });
  }

  /** Where the card stands in this step, in a window of this size. */
  const settle = () => card.open && place(document.querySelector(STEPS[step][0]).getBoundingClientRect());

  /** Beside what it speaks of, where there is room: to the right, to the left, below, above. */
  function place({ left, right, top, bottom }) {
    const { width, height } = card.getBoundingClientRect();
    const [most, low] = [window.innerWidth - width - 8, window.innerHeight - height - 8];
    const x = right < most ? right + 8 : left > width + 16 ? left - width - 8 : left + 24;
    const y = right < most || left > width + 16 ? top + 24 : bottom < low ? bottom + 8 : top - height - 8;
    card.style.left = `${Math.max(8, Math.min(x, most))}px`;
    card.style.top = `${Math.max(8, Math.min(y, low))}px`;
  }

  function open() {
    if (!card.open) card.show();
    remember();
    go(0);
  }

  function close() {
    mark("");
    card.close();
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

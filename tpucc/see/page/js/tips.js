/** What a word or a place means, in a box beside it: under the pointer, and where the keyboard's focus is. */
const tips = (() => {
  const box = dom.make("div", { id: "tip", role: "tooltip", hidden: "" });
  let again = () => {}; // shows anew what changes while it is shown

  /** Shows a text beside a place of the window; lines are separated by line feeds. */
  function show(text, x, y) {
    box.textContent = text;
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const above = y - height - 10;
    box.style.left = `${Math.max(4, Math.min(x + 12, window.innerWidth - width - 4))}px`;
    box.style.top = `${above > 4 ? above : y + 18}px`;
  }

  function hide() {
    again = () => {};
    box.hidden = true;
  }

  /** Shows what `meaning()` says of an element, under the pointer, and as long as it has the focus: by a key, or a click. */
  function live(element, meaning) {
    const shown = () => {
      const { left, top } = element.getBoundingClientRect();
      show(meaning(), left - 12, top);
      again = shown;
    };
    for (const kind of ["mouseenter", "focus"]) element.addEventListener(kind, shown);
    element.addEventListener("mouseleave", () => document.activeElement === element || hide());
    element.addEventListener("blur", hide);
    return element;
  }

  /** Makes an element a word that explains itself. */
  function explain(element, meaning) {
    element.setAttribute("aria-description", meaning);
    return live(element, () => meaning);
  }

  /** A word with its meaning. */
  const word = (text, meaning, ...before) => explain(dom.make("span", { class: "term", tabindex: "0" }, ...before, text), meaning);

  /** A sentence as nodes: each of the glossary's words explains itself where it first stands; a part of a name is none. */
  function sentence(text) {
    const found = new RegExp(`(?<![\\w.-])((?:${Object.keys(model.spoken).join("|")})s?)(?![\\w-]|\\.\\w)`);
    const told = new Set();
    return text.split(found).map((part, place) => {
      const key = part.replace(/s$/, "");
      if (place % 2 === 0 || told.has(key)) return part;
      told.add(key);
      return word(part, model.spoken[key]);
    });
  }

  /** Shows `find(event)`, a text or nothing, wherever the pointer is on `element`. */
  function follow(element, find) {
    element.addEventListener("mousemove", (event) => {
      const text = event.buttons ? "" : find(event);
      if (text) show(text, event.clientX, event.clientY);
      else hide();
    });
    for (const kind of ["mouseleave", "click"]) element.addEventListener(kind, hide);
  }

  function start() {
    document.body.append(box);
    for (const element of document.querySelectorAll(".term[title]")) {
      explain(element, element.title);
      element.removeAttribute("title");
    }
    document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  }

  return { word, sentence, explain, live, again: () => again(), follow, start };
})();

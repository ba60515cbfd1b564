/** One field finds lines, layers, buffers and instructions by their text. */
const search = (() => {
  const MOST = 12;
  const box = document.getElementById("search");
  const [field, results] = [box.querySelector("input"), box.querySelector("ol")];
  const text = (value) => value.toLowerCase();

  const places = [
    { kind: "line", texts: model.lines, label: (id, found) => `line ${id + 1}  ${found.trim()}`, id: (place) => place + 1 },
    { kind: "layer", texts: model.layers.map(({ name }) => name), label: (_, found) => `layer ${found}`, id: (place) => place },
    { kind: "buffer", texts: model.buffers.map(({ name }) => name), label: (_, found) => `buffer ${found}`, id: (place) => place },
    { kind: "instruction", texts: model.texts, label: (id, found) => `instruction ${words.number(id)}  ${found}`, id: (place) => place },
  ];

  /** The first few matches of each kind; a number is also the instruction of that number. */
  function matches(query) {
    const wanted = text(query.trim());
    if (!wanted) return [];
    const number = Number(wanted.replaceAll(",", ""));
    const exact = Number.isInteger(number) && number < model.code.count && number >= 0 ? [{ wanted: { kind: "instruction", id: number }, label: `instruction ${words.number(number)}  ${model.texts[number]}` }] : [];
    return [...exact, ...places.flatMap((place) => ofKind(place, wanted))];
  }

  function ofKind({ kind, texts, label, id }, wanted) {
    const found = [];
    for (let place = 0; place < texts.length && found.length < MOST; place++) {
      if (text(texts[place]).includes(wanted)) found.push({ wanted: { kind, id: id(place) }, label: label(place, texts[place]) });
    }
    return found;
  }

  function show() {
    const found = matches(field.value);
    results.hidden = !field.value.trim();
    results.replaceChildren(...found.map(item));
    if (!found.length && field.value.trim()) {
      const none = document.createElement("li");
      none.textContent = "nothing found";
      results.append(none);
    }
  }

  function item({ wanted, label }) {
    const [entry, button] = [document.createElement("li"), document.createElement("button")];
    button.textContent = label;
    button.addEventListener("click", () => choose(wanted));
    entry.append(button);
    return entry;
  }

  function choose(wanted) {
    selection.hold(wanted, "search");
    close();
  }

  function close() {
    results.hidden = true;
    field.blur();
  }

  /** Arrow keys go through the results. */
  function move(step) {
    const buttons = [field, ...results.querySelectorAll("button")];
    const next = buttons.indexOf(document.activeElement) + step;
    buttons[Math.min(buttons.length - 1, Math.max(0, next))].focus();
  }

  function key(event) {
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") move(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Enter" && event.target === field) results.querySelector("button")?.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  function start() {
    field.addEventListener("input", show);
    field.addEventListener("focus", show);
    box.addEventListener("keydown", key);
    document.addEventListener("pointerdown", (event) => box.contains(event.target) || (results.hidden = true));
  }

  return { start, focus: () => field.select() };
})();

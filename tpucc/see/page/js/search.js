/** One field finds lines, layers, buffers and instructions by their text. */
const search = (() => {
  const MOST = 12;
  const box = document.getElementById("search");
  const [field, results] = [box.querySelector("input"), box.querySelector("ol")];

  const places = [
    { kind: "line", texts: model.lines, label: (id, found) => `line ${id}  ${found.trim()}`, first: 1 },
    { kind: "layer", texts: model.layers.map(({ name }) => name), label: (_, found) => `layer ${found}`, first: 0 },
    { kind: "buffer", texts: model.buffers.map(({ name }) => name), label: (_, found) => `buffer ${found}`, first: 0 },
    { kind: "instruction", texts: model.texts, label: (id, found) => `instruction ${words.number(id)}  ${found}`, first: 0 },
  ];

  /** The first few matches of each kind; a number is also the instruction of that number. */
  function matches(query) {
    const wanted = query.trim().toLowerCase();
    if (!wanted) return [];
    const number = /^\d[\d,]*$/.test(wanted) ? Number(wanted.replaceAll(",", "")) : -1;
    const exact = number in model.texts ? [entry(places.at(-1), number)] : [];
    return [...exact, ...places.flatMap((place) => ofKind(place, wanted))];
  }

  const entry = ({ kind, texts, label, first }, place) => ({ wanted: { kind, id: place + first }, label: label(place + first, texts[place]) });

  function ofKind(kind, wanted) {
    const found = [];
    for (let place = 0; place < kind.texts.length && found.length < MOST; place++) {
      if (kind.texts[place].toLowerCase().includes(wanted)) found.push(entry(kind, place));
    }
    return found;
  }

  function show() {
    const found = matches(field.value);
    results.hidden = !field.value.trim();
    results.replaceChildren(...(found.length ? found.map(item) : [dom.make("li", {}, "nothing found")]));
  }

  const item = ({ wanted, label }) => dom.make("li", {}, dom.make("button", { click: () => choose(wanted) }, label));

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

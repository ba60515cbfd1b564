/** Elements and accumulators that tell about themselves: under the pointer for a while, clicked or focused until another is. */
const targets = (() => {
  const { array, accumulators } = data.geometry;
  const output = document.getElementById("element");
  const ring = boxes.element("rect", { class: "ring", visibility: "hidden" }, scene.svg);
  const state = { number: 0, held: { kind: "element", i: 0, j: 0 }, over: null };
  const lattices = { element: array, sum: accumulators };
  const found = new Map();
  const key = (target) => `${target.kind} ${target.i} ${target.j}`;

  const surround = (target) => {
    const lattice = lattices[target.kind];
    const { x, y } = boxes.corner(lattice, target.i, target.j);
    const place = { x: x - 2, y: y - 2, width: lattice.width + 4, height: lattice.height + 4, rx: Math.min(9, lattice.height / 4) };
    for (const [attribute, value] of Object.entries({ ...place, visibility: "visible" })) ring.setAttribute(attribute, String(value));
  };

  const tell = () => {
    const target = state.over ?? state.held;
    const [first, ...others] = words[target.kind](state.number, target.i, target.j);
    output.replaceChildren(boxes.paragraph(first, "first"), ...others.filter(Boolean).map((other) => boxes.paragraph(other, "more")));
    surround(target);
    found.get(key(target)).setAttribute("aria-label", first);
  };

  const hold = (target) => {
    found.get(key(state.held)).setAttribute("tabindex", "-1");
    state.held = target;
    found.get(key(target)).setAttribute("tabindex", "0");
    tell();
  };

  const add = (kind, i, j) => {
    const { x, y } = boxes.corner(lattices[kind], i, j);
    const { width, height } = lattices[kind];
    const node = boxes.element("rect", { x, y, width, height, class: "target", tabindex: -1, role: "img" }, scene.svg);
    const target = { kind, i, j };
    found.set(key(target), node);
    node.dataset.target = `${kind} ${i},${j}`;
    for (const [event, over] of [["pointerenter", target], ["pointerleave", null]]) {
      node.addEventListener(event, () => {
        state.over = over;
        tell();
      });
    }
    node.addEventListener("focus", () => hold(target));
  };

  for (let i = 0; i < data.rows; i += 1) for (let j = 0; j < data.columns; j += 1) add("element", i, j);
  for (let i = 0; i < data.count; i += 1) for (let j = 0; j < data.columns; j += 1) add("sum", i, j);

  /** Goes to a neighbour of the element that is held; from the last row of elements to the accumulators and back. */
  const move = (down, right) => {
    const { kind, i, j } = state.held;
    const rows = { element: data.rows, sum: data.count };
    const column = Math.min(Math.max(j + right, 0), data.columns - 1);
    let target = { kind, i: i + down, j: column };
    if (kind === "element" && target.i >= data.rows) target = { kind: "sum", i: 0, j: column };
    if (kind === "sum" && target.i < 0) target = { kind: "element", i: data.rows - 1, j: column };
    target.i = Math.min(Math.max(target.i, 0), rows[target.kind] - 1);
    found.get(key(target)).focus({ preventScroll: true });
  };

  /** Tells about a cycle. */
  const show = (number) => {
    state.number = number;
    for (const [name, node] of found) {
      const [kind, i, j] = name.split(" ");
      node.classList.toggle("differs", kind === "element" && words.differing(number, i, j).length > 0);
    }
    tell();
  };

  hold(state.held);
  return { move, show };
})();

/**
 * The lines between the panes: dragged, or moved with arrow keys. Sizes are shares of the window, so that panes grow with it. A pane grows as
 * far as the one beside it, which gives the room, keeps the least size of its style.
 */
const panes = (() => {
  const KEY = "tpucc.panes";
  const STEP = 2;
  const splits = [...document.querySelectorAll('[role="separator"]')];

  /** The sizes that this session knows. Where storage is denied, each page begins anew. */
  function known() {
    try {
      return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
    } catch {
      return {};
    }
  }

  function keep(name, size) {
    try {
      sessionStorage.setItem(KEY, JSON.stringify({ ...known(), [name]: size }));
    } catch {
      // The size holds as long as the page does.
    }
  }

  /** What a line bounds: the pane that it makes larger, whether it goes across the page, and whether the pane is before it. */
  function part(split) {
    const { pane, before } = split.dataset;
    const across = split.getAttribute("aria-orientation") === "horizontal";
    const element = document.getElementById(pane);
    return { pane, element, across, sign: before === undefined ? -1 : 1, whole: across ? window.innerHeight : window.innerWidth };
  }

  function share(split) {
    const { element, across, whole } = part(split);
    const { width, height } = element.getBoundingClientRect();
    return (100 * (across ? height : width)) / whole;
  }

  /** The share that a pane has if the one beside it keeps no more than it needs. */
  function room(split) {
    const { across, whole } = part(split);
    const beside = document.getElementById(split.dataset.beside);
    const { width, height } = beside.getBoundingClientRect();
    const { minWidth, minHeight } = getComputedStyle(beside);
    const spare = across ? height - parseFloat(minHeight) : width - parseFloat(minWidth);
    return share(split) + (100 * spare) / whole;
  }

  const bounded = (split, wanted) => Math.max(Number(split.ariaValueMin), Math.min(Number(split.ariaValueMax), room(split), wanted));
  const told = (split) => split.setAttribute("aria-valuenow", String(Math.round(share(split))));

  function set(split, wanted) {
    const { pane, across } = part(split);
    const found = bounded(split, wanted);
    document.documentElement.style.setProperty(`--${pane}-size`, `${found}${across ? "vh" : "vw"}`);
    for (const other of splits) told(other);
    return found;
  }

  const move = (split, wanted) => keep(part(split).pane, set(split, wanted));

  /** The size of the style sheet. */
  function reset(split) {
    const { pane } = part(split);
    document.documentElement.style.removeProperty(`--${pane}-size`);
    keep(pane, undefined);
    for (const other of splits) told(other);
  }

  function press(event) {
    const split = event.currentTarget;
    const { across, sign } = part(split);
    const [less, more] = across ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
    const wanted = {
      [less]: () => move(split, share(split) - STEP * sign),
      [more]: () => move(split, share(split) + STEP * sign),
      Home: () => move(split, Number(split.ariaValueMin)),
      End: () => move(split, Number(split.ariaValueMax)),
      Enter: () => reset(split),
    }[event.key];
    if (!wanted) return;
    event.preventDefault();
    event.stopPropagation();
    wanted();
  }

  function start() {
    const sizes = known();
    for (const split of splits) {
      const { pane, across, sign } = part(split);
      if (Number.isFinite(sizes[pane])) set(split, sizes[pane]);
      split.addEventListener("keydown", press);
      split.addEventListener("dblclick", () => reset(split));
      split.addEventListener("mousedown", (event) => event.preventDefault()); // no text is selected
      dom.drag(split, () => share(split), (begin, dx, dy) => move(split, begin + (100 * sign * (across ? dy : dx)) / part(split).whole));
    }
    const all = () => splits.forEach(told);
    window.addEventListener("resize", all);
    all();
  }

  return { start };
})();

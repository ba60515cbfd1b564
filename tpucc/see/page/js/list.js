/** Long lists: only the rows that can be seen are elements. */
const list = (() => {
  const HEIGHT = 20;
  const SPARE = 6;

  /**
   * Makes `panel`, which scrolls, show `count()` rows; `fill(row, index)` says what row `index` shows, whenever it may have changed. The
   * cells of `heads` stand above them, and stay there.
   */
  function open(panel, count, fill, heads = []) {
    const head = heads.length ? [dom.make("div", { class: "row heads" }, ...heads)] : [];
    const space = dom.make("div", { class: "rows" });
    panel.append(...head, space);
    const covered = head.length * HEIGHT;
    const rows = [];

    function draw() {
      space.style.height = `${count() * HEIGHT}px`;
      const first = Math.max(0, Math.floor(panel.scrollTop / HEIGHT) - SPARE);
      const last = Math.min(count(), Math.ceil((panel.scrollTop + panel.clientHeight - covered) / HEIGHT) + SPARE);
      while (rows.length < last - first) rows.push(space.appendChild(dom.make("div")));
      rows.forEach((row, place) => {
        const index = first + place;
        row.hidden = index >= last;
        if (row.hidden) return;
        row.style.top = `${index * HEIGHT}px`;
        row.dataset.row = index;
        row.className = "row";
        fill(row, index);
      });
    }

    /** Scrolls so that row `index` can be seen. */
    function reveal(index) {
      const top = index * HEIGHT;
      if (top < panel.scrollTop || top + HEIGHT > panel.scrollTop + panel.clientHeight - covered) panel.scrollTop = top - panel.clientHeight / 3;
      draw();
    }

    panel.addEventListener("scroll", draw);
    new ResizeObserver(draw).observe(panel);
    return { draw, reveal };
  }

  /** The number of the row under an event, or -1. */
  const rowOf = (event) => Number(event.target.closest("[data-row]")?.dataset.row ?? -1);

  /** A cell of a row. */
  const cell = (kind, text) => dom.make("span", { class: kind }, text);

  return { open, rowOf, cell };
})();

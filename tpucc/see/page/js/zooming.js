/** Moving about in a picture that is larger than its frame: it fits when it opens, if it can be read then; it can be zoomed, and has a small map of the whole. */
const zooming = (() => {
  const STEP = 1.25;
  const [LEAST, MOST] = [0.1, 8];
  const READABLE = 0.75; // texts of 12 pixels are 9
  const MAP = { width: 160, height: 120 };
  const MOSTLY = 0.5; // where more than this part of the picture is seen, a map would cover more than it shows
  const BUTTONS = 44; // pixels
  const PART = 1 / 4; // of the frame, at most, each way

  /**
   * A small map of a picture, with what the frame shows of it as a rectangle. A click or a drag on it moves there. The frame scrolls further
   * than the picture goes, so that nothing of it stays behind the map, or behind the buttons.
   */
  function mapOf(frame, svg, scale) {
    const [use, seen] = [dom.svg("use"), dom.svg("rect", { class: "seen" })];
    const drawing = dom.svg("svg", { "aria-hidden": "true" }, use, seen);
    const map = dom.make("div", { class: "map", hidden: "", title: "the whole picture; click to go there" }, dom.make("div", { inert: "" }, drawing)); // the links of the copy are no stops of Tab
    function draw() {
      const { width, height } = svg().viewBox.baseVal;
      const least = Math.min(Math.min(MAP.width, PART * frame.clientWidth) / width, Math.min(MAP.height, PART * frame.clientHeight) / height);
      const seenOf = [frame.clientWidth / width, frame.clientHeight / height].map((share) => Math.min(1, share / scale()));
      map.hidden = seenOf[0] * seenOf[1] > MOSTLY;
      const behind = (element) => `${frame.getBoundingClientRect().bottom - element.getBoundingClientRect().top}px`;
      if (map.hidden) {
        frame.style.paddingBottom = height * scale() > frame.clientHeight ? behind(map.parentElement) : "";
        return;
      }
      for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width: width * least, height: height * least })) drawing.setAttribute(name, value);
      for (const [name, value] of Object.entries({ href: `#${svg().id}`, width, height })) use.setAttribute(name, value);
      const shown = { x: frame.scrollLeft, y: frame.scrollTop, width: frame.clientWidth, height: frame.clientHeight };
      for (const [name, value] of Object.entries(shown)) seen.setAttribute(name, value / scale());
      frame.style.paddingBottom = behind(map);
    }
    function go(event) {
      if (!event.buttons) return;
      event.preventDefault();
      const place = drawing.getBoundingClientRect();
      const factor = (svg().viewBox.baseVal.width / place.width) * scale();
      frame.scrollTo((event.clientX - place.left) * factor - frame.clientWidth / 2, (event.clientY - place.top) * factor - frame.clientHeight / 2);
    }
    for (const kind of ["pointerdown", "pointermove"]) map.addEventListener(kind, go);
    frame.addEventListener("scroll", draw);
    return { map, draw };
  }

  /** The scales at which all of a picture fits above the buttons, and its width. */
  function fittings(frame, { width, height }) {
    const across = Math.min(1, frame.clientWidth / width);
    return [Math.min(across, (frame.clientHeight - BUTTONS) / height), across];
  }
  /** The scale at which it opens. A right edge that is cut is overlooked; where its width has no room either, its texts have their own size. */
  const opening = (frame, size) => fittings(frame, size).find((scale) => scale >= READABLE) ?? 1;

  /** Zooms what is in a frame, with Ctrl and the wheel too; `svg()` is the picture that is in it now. It fits until somebody zooms it. */
  function zoomable(frame, svg) {
    const [zoomed, whole] = [new WeakSet(), new WeakSet()];
    const size = () => svg().viewBox.baseVal;
    const scale = () => svg().width.baseVal.value / size().width;
    const { map, draw } = mapOf(frame, svg, scale);
    function to(wanted, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
      const [before, next] = [scale(), Math.min(MOST, Math.max(LEAST, wanted))];
      const [left, top] = [(frame.scrollLeft + x) / before, (frame.scrollTop + y) / before];
      svg().setAttribute("width", size().width * next);
      svg().setAttribute("height", size().height * next);
      frame.scrollTo(left * next - x, top * next - y);
      draw();
    }
    function by(steps, ...place) {
      zoomed.add(svg());
      to(scale() * STEP ** steps, ...place);
    }
    const fitting = () => fittings(frame, size())[0];
    function fit() {
      zoomed.delete(svg());
      whole.add(svg());
      to(fitting());
    }
    /** Fits what nobody has zoomed, as far as it can be read, when it is shown or its frame has another size. */
    function settle() {
      if (!frame.clientWidth) return;
      if (zoomed.has(svg())) draw();
      else to(whole.has(svg()) ? fitting() : opening(frame, size()));
    }
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const place = frame.getBoundingClientRect();
      by(-Math.sign(event.deltaY), event.clientX - place.left, event.clientY - place.top);
    }, { passive: false });
    const button = (text, label, click) => dom.make("button", { title: label, "aria-label": label.split(" (")[0], click }, text);
    const buttons = [button("+", "zoom in (+)", () => by(1)), button("−", "zoom out (-)", () => by(-1)), button("fit", "fit the picture (0)", fit)];
    frame.after(dom.make("div", { class: "tools" }, map, dom.make("div", { role: "group", "aria-label": "zoom" }, ...buttons)));
    new ResizeObserver(settle).observe(frame);
    return { by, fit, settle };
  }

  /** Dragging moves the picture. Returns whether that is what the pointer did last. */
  const draggable = (frame) => dom.drag(frame, () => [frame.scrollLeft, frame.scrollTop], ([left, top], dx, dy) => frame.scrollTo(left - dx, top - dy));

  return { zoomable, draggable };
})();

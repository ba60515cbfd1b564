/** Moving about in a picture that is larger than its frame. */
const zooming = (() => {
  const STEP = 1.25;
  const [LEAST, MOST] = [0.1, 8];

  /** Zooms what is in a frame, with Ctrl and the wheel too; `svg()` is the picture that is in it now. */
  function zoomable(frame, svg) {
    const size = () => svg().viewBox.baseVal;
    const scale = () => svg().width.baseVal.value / size().width;
    function to(wanted, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
      const [before, next] = [scale(), Math.min(MOST, Math.max(LEAST, wanted))];
      const [left, top] = [(frame.scrollLeft + x) / before, (frame.scrollTop + y) / before];
      svg().setAttribute("width", size().width * next);
      svg().setAttribute("height", size().height * next);
      frame.scrollTo(left * next - x, top * next - y);
    }
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const place = frame.getBoundingClientRect();
      to(scale() * STEP ** -Math.sign(event.deltaY), event.clientX - place.left, event.clientY - place.top);
    }, { passive: false });
    return { by: (steps) => to(scale() * STEP ** steps), fit: () => to(Math.min(1, frame.clientWidth / size().width)) };
  }

  /** Dragging moves the picture. Returns whether that is what the pointer did last: a drag is no click. */
  function draggable(frame) {
    let from = null;
    frame.addEventListener("pointerdown", (event) => {
      if (event.button === 0) from = { x: event.clientX, y: event.clientY, left: frame.scrollLeft, top: frame.scrollTop, far: false };
    });
    window.addEventListener("pointermove", (event) => {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      from.far ||= Math.hypot(dx, dy) > 4;
      if (from.far) frame.scrollTo(from.left - dx, from.top - dy);
    });
    window.addEventListener("pointerup", () => setTimeout(() => (from = null)));
    return () => from?.far ?? false;
  }

  return { zoomable, draggable };
})();

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

  /** Dragging moves the picture. Returns whether that is what the pointer did last. */
  const draggable = (frame) => dom.drag(frame, () => [frame.scrollLeft, frame.scrollTop], ([left, top], dx, dy) => frame.scrollTo(left - dx, top - dy));

  return { zoomable, draggable };
})();

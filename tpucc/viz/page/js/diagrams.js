/** Diagrams that came as SVG: their boxes light up, and can be pointed at and held; they zoom with Ctrl and the wheel, and drag. */
const diagrams = (() => {
  const STEP = 1.25;
  const [LEAST, MOST] = [0.1, 8];

  /** The box under an event: its number in the diagram `name`. */
  function boxOf(event, name) {
    const box = event.target.closest(`[id^="${name}-b"]`);
    return box ? { kind: "box", diagram: name, id: Number(box.id.slice(name.length + 2)) } : null;
  }

  function light(name, svg, chosen, lit) {
    svg.classList.toggle("some", lit !== null && !lit.idle);
    model.diagrams[name].forEach((origins, id) => {
      const box = document.getElementById(`${name}-b${id}`);
      if (!box) return;
      box.classList.toggle("lit", lit !== null && origins.some((origin) => lit.origins.has(origin)));
      box.classList.toggle("held", selection.same(chosen, { kind: "box", diagram: name, id }));
    });
  }

  /** Brings the first box that is lit to where it can be seen. */
  function reveal(name) {
    const box = document.querySelector(`#view-${name} .lit`);
    box?.scrollIntoView({ block: "center", inline: "center" });
  }

  function zoomable(frame, svg) {
    const [width, height] = [svg.width.baseVal.value, svg.height.baseVal.value];
    let scale = 1;
    function to(wanted, x = frame.clientWidth / 2, y = frame.clientHeight / 2) {
      const next = Math.min(MOST, Math.max(LEAST, wanted));
      const [left, top] = [(frame.scrollLeft + x) / scale, (frame.scrollTop + y) / scale];
      scale = next;
      svg.setAttribute("width", width * scale);
      svg.setAttribute("height", height * scale);
      frame.scrollTo(left * scale - x, top * scale - y);
    }
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const place = frame.getBoundingClientRect();
      to(scale * STEP ** -Math.sign(event.deltaY), event.clientX - place.left, event.clientY - place.top);
    }, { passive: false });
    return { by: (steps) => to(scale * STEP ** steps), fit: () => to(Math.min(1, frame.clientWidth / width)) };
  }

  /** Dragging moves the picture. A drag is no click. */
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

  function open(name) {
    const frame = document.querySelector(`#view-${name} .picture`);
    const svg = frame.querySelector("svg");
    const dragged = draggable(frame);
    frame.addEventListener("mouseover", (event) => selection.point(boxOf(event, name), name));
    frame.addEventListener("mouseleave", () => selection.point(null, name));
    frame.addEventListener("click", (event) => {
      event.preventDefault();
      if (!dragged()) selection.hold(boxOf(event, name), name);
    });
    selection.listen((chosen, lit, from) => {
      light(name, svg, chosen, lit);
      if (lit && from !== name && selection.held()) reveal(name);
    });
    zooms.set(name, zoomable(frame, svg));
  }

  const zooms = new Map();

  return { start: () => Object.keys(model.diagrams).forEach(open), zoom: (name) => zooms.get(name), reveal };
})();

/** The stretch of time that the timeline and the map of the buffer show, and how both are drawn, dragged and zoomed. */
const axis = (() => {
  const NARROW = 600;
  const LEFT = window.innerWidth < NARROW ? 72 : 110;
  const RIGHT = 12;
  const STEP = 1.3;
  const listeners = [];

  /** The part of an axis from 0 to `most` that is shown; `changed` hears of each other one. */
  class Stretch {
    constructor(least, most, changed) {
      Object.assign(this, { least: Math.min(least, most), most, changed, from: 0, to: most });
    }

    get width() {
      return this.to - this.from;
    }

    /** Shows [start, end), moved and bounded so that it lies on the axis and is at least `least` wide. */
    show(start, end) {
      const width = Math.min(this.most, Math.max(this.least, end - start));
      this.from = Math.min(Math.max(0, start), this.most - width);
      this.to = this.from + width;
      this.changed();
    }

    zoom(steps, at = (this.from + this.to) / 2) {
      const factor = STEP ** -steps;
      this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
    }

    pan(share) {
      this.show(this.from + this.width * share, this.to + this.width * share);
    }

    all() {
      this.show(0, this.most);
    }

    /** Round values between the ends: at most `most` steps of 1, 2 or 5 times a power of ten. */
    ticks(most) {
      const rough = this.width / most;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = Math.max(1, power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10));
      const found = [];
      for (let tick = Math.ceil(this.from / step) * step; tick <= this.to; tick += step) found.push(tick);
      return found;
    }
  }

  const time = new Stretch(16, Math.max(1, model.cycles), () => {
    for (const listener of listeners) listener();
  });

  /** Moves so that [start, end) can be seen, if none of it can. */
  function reveal(start, end) {
    if (end >= time.from && start <= time.to) return;
    const half = time.width / 2;
    time.show((start + end) / 2 - half, (start + end) / 2 + half);
  }

  /**
   * A canvas over the same time: `draw(context, width, height, x)` paints it, where x(cycle) is a place in pixels. `upwards` is what dragging
   * and turning the wheel do besides to an axis of the canvas's own.
   */
  function attach(canvas, draw, upwards = null) {
    const context = canvas.getContext("2d");
    let waiting = 0;
    const inside = () => canvas.clientWidth - LEFT - RIGHT;
    const timeAt = (place) => time.from + ((place - LEFT) / inside()) * time.width;

    function paint() {
      waiting = 0;
      if (inside() <= 0) return; // in a frame that isn't shown
      const [width, height, ratio] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
      cleared(context, Math.round(width * ratio), Math.round(height * ratio));
      context.save();
      context.scale(ratio, ratio);
      context.font = getComputedStyle(canvas).font;
      const cycle = (width - LEFT - RIGHT) / time.width;
      draw(context, width, height, (at) => LEFT + (at - time.from) * cycle);
      context.restore();
    }

    const soon = () => (waiting ||= requestAnimationFrame(paint));
    listeners.push(soon);
    new ResizeObserver(soon).observe(canvas);
    handled(canvas, timeAt, inside, upwards);
    return { paint, soon, timeAt, slack: (pixels) => (pixels / inside()) * time.width };
  }

  /** Makes a canvas empty, of this size. One of another size is laid out anew. */
  function cleared(context, width, height) {
    const { canvas } = context;
    if (canvas.width === width && canvas.height === height) context.clearRect(0, 0, width, height);
    else [canvas.width, canvas.height] = [width, height];
  }

  /**
   * What lies below all that changes with the selection: `below(context, key, draw)` draws it once for as long as the key, the window, the colours
   * and the size of the canvas are the same.
   */
  function ground() {
    const kept = document.createElement("canvas").getContext("2d");
    let known = "";
    return (context, key, draw) => {
      const { canvas } = context;
      const wanted = [key, time.from, time.to, canvas.width, canvas.height, context.font, colours.edition()].join(" ");
      if (known !== wanted) {
        known = wanted;
        cleared(kept, canvas.width, canvas.height);
        kept.save();
        kept.setTransform(context.getTransform());
        kept.font = context.font;
        draw(kept);
        kept.restore();
      }
      context.save();
      context.resetTransform();
      context.drawImage(kept.canvas, 0, 0);
      context.restore();
    };
  }

  /** Paints what is cut off where the window begins and ends, and above `top`. */
  function clipped(context, width, height, paint, top = 0) {
    context.save();
    context.beginPath();
    context.rect(LEFT, top, width - LEFT - RIGHT, height);
    context.clip();
    paint();
    context.restore();
  }

  /** The wheel zooms where the pointer is, dragging moves, a double click shows the whole program and holds what was held before it. */
  function handled(canvas, timeAt, inside, upwards) {
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (upwards?.wheel(event)) return;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) time.pan(Math.sign(event.deltaX || event.deltaY) * 0.1);
      else time.zoom(-Math.sign(event.deltaY), timeAt(event.offsetX));
    }, { passive: false });
    const dragged = dom.drag(canvas, () => [time.from, time.to, upwards?.begin()], ([start, end, other], dx, dy) => {
      const moved = (dx / inside()) * (end - start);
      time.show(start - moved, end - moved);
      upwards?.drag(other, dy);
    });
    let held = null;
    canvas.addEventListener("click", (event) => {
      if (dragged() || event.detail > 1) event.stopImmediatePropagation();
      else held = selection.held();
    });
    canvas.addEventListener("dblclick", () => {
      selection.hold(held, "timeline");
      upwards?.all();
      time.all();
    });
  }

  return { LEFT, RIGHT, Stretch, time, attach, ground, clipped, reveal, window: () => [time.from, time.to], listen: (listener) => listeners.push(listener) };
})();

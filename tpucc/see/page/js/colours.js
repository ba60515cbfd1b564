/** The palette, for what is painted on canvases: the style sheet's variables in the theme that holds now. */
const colours = (() => {
  let known = new Map();
  let forgotten = 0;
  const patterns = new Map();

  /** The value of `--name`. */
  function of(name) {
    if (!known.has(name)) known.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
    return known.get(name);
  }

  /** Red, green and blue of a colour `#rrggbb`, from 0 to 1. */
  const channels = (colour) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);

  /** How light red, green and blue are together, from 0 to 1. */
  function luminance([red, green, blue]) {
    const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  }

  /** A fill over which there is `share` of ink. */
  function shaded(name, share) {
    const ink = channels(of("ink"));
    return channels(of(name)).map((value, place) => value * (1 - share) + ink[place] * share);
  }

  /** The colour of text on a fill, over which there may be some ink: that of `ink` and `paper` which stands out more. */
  function over(name, share = 0) {
    const behind = luminance(shaded(name, share)) + 0.05;
    const contrast = (other) => {
      const light = luminance(channels(of(other))) + 0.05;
      return Math.max(behind, light) / Math.min(behind, light);
    };
    return of(contrast("ink") > contrast("paper") ? "ink" : "paper");
  }

  /** The hatching of a root for which the matrix unit waits. */
  function hatch(context, { kind, angle, crossed }) {
    const key = `${kind} ${angle} ${crossed}`;
    if (!patterns.has(key)) patterns.set(key, context.createPattern(strokes(of(`${kind}-line`), crossed ? [angle, angle + 90] : [angle]), "repeat"));
    return patterns.get(key);
  }

  /** A square of 8 pixels with lines at these angles. */
  function strokes(colour, angles) {
    const square = document.createElement("canvas");
    square.width = square.height = 8;
    const context = square.getContext("2d");
    context.strokeStyle = colour;
    context.lineWidth = 2;
    const lines = { 45: [[-2, 2, 2, -2], [0, 8, 8, 0], [6, 10, 10, 6]], 135: [[-2, 6, 2, 10], [0, 0, 8, 8], [6, -2, 10, 2]], 90: [[0, 4, 8, 4]], 0: [[4, 0, 4, 8]] };
    for (const [x1, y1, x2, y2] of angles.flatMap((angle) => lines[angle])) {
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      context.stroke();
    }
    return square;
  }

  /** Forgets everything: the theme has changed. */
  function forget() {
    known = new Map();
    forgotten += 1;
    patterns.clear();
  }

  return { of, over, hatch, forget, edition: () => forgotten };
})();

/** Every text that can be seen whose colour stands out too little from what is behind it, each once; `least` is the ratio of WCAG 2.1. */
(least) => {
  const numbers = (colour) => {
    const found = (colour.match(/[\d.]+(e-\d+)?/g) ?? []).map(Number);
    const scale = colour.startsWith("color(") ? 255 : 1;
    return [found[0] * scale, found[1] * scale, found[2] * scale, found[3] ?? 1];
  };

  /** `upper` over `lower`. */
  const over = ([r, g, b, a], lower) => [r, g, b].map((value, index) => a * value + (1 - a) * lower[index]);

  const luminance = (colour) => {
    const [r, g, b] = colour.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };

  /** What is behind an HTML element: the colours of all around it, one over the other. */
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.unshift(numbers(getComputedStyle(at).backgroundColor));
    return layers.reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };

  const filled = (shape) => {
    const { fill, fillOpacity, visibility, display } = getComputedStyle(shape);
    if (fill === "none" || fill.startsWith("url") || visibility === "hidden" || display === "none") return null;
    const [r, g, b, a] = numbers(fill);
    return [r, g, b, a * Number(fillOpacity)];
  };

  const contains = (outer, inner) => outer.left <= inner.left + 1 && outer.right >= inner.right - 1 && outer.top <= inner.top + 3 && outer.bottom >= inner.bottom - 3;

  /** What is behind a text in a picture: the shapes drawn before it that contain it, and what is behind the picture. */
  const behindText = (text) => {
    const picture = text.ownerSVGElement;
    const box = text.getBoundingClientRect();
    let under = behind(picture);
    for (const shape of picture.querySelectorAll("rect, circle, ellipse, polygon, text")) {
      if (shape === text) break;
      if (shape.tagName === "text" || shape.closest("defs, pattern, clipPath, mask")) continue;
      const colour = filled(shape);
      if (colour && contains(shape.getBoundingClientRect(), box)) under = over(colour, under);
    }
    return under;
  };

  /** Whether it is faded on purpose: what doesn't belong to the selection recedes. */
  const receded = (element) => element.closest(".some .box:not(.lit)") !== null;

  const seen = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  };

  const faults = new Set();
  let count = 0;
  const judge = (element, colour, under, text) => {
    count += 1;
    const found = ratio(over(colour, under), under);
    if (found >= least) return;
    const place = `${element.tagName}.${element.getAttribute("class") ?? ""} in #${element.parentElement.closest("[id]")?.id}`;
    faults.add(`${found.toFixed(2)}: ${place}: ${text.trim().slice(0, 30)} (${over(colour, under).map(Math.round)} on ${under.map(Math.round)})`);
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement: element, data } = walker.currentNode;
    if (!data.trim() || element.closest("script, style, template, title, option") || !seen(element) || receded(element)) continue;
    const text = element instanceof SVGElement ? element.closest("text") : null;
    if (element instanceof SVGElement) {
      if (text) judge(element, filled(element) ?? [0, 0, 0, 0], behindText(text), data);
    } else {
      judge(element, numbers(getComputedStyle(element).color), behind(element), data);
    }
  }
  for (const field of document.querySelectorAll("input[placeholder]")) {
    judge(field, numbers(getComputedStyle(field, "::placeholder").color), behind(field), field.placeholder);
  }
  return { count, faults: [...faults].sort() };
}

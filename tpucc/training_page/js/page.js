/** The page of a training: lines of the source and boxes that light each other, and boxes that open. */
(() => {
  const picture = document.querySelector(".picture");
  const dialog = document.getElementById("inside");

  const boxes = [...picture.querySelectorAll(".box")];
  const lines = [...document.querySelectorAll("#source [data-line]")];
  const linesOf = (box) => [...box.classList].filter((name) => name.startsWith("line-")).map((name) => name.slice(5));
  let held = null;

  /** Lights boxes and lines; nothing lights when there are none. */
  function light(litBoxes, litLines) {
    for (const box of boxes) box.classList.toggle("lit", litBoxes.includes(box));
    for (const line of lines) line.classList.toggle("lit", litLines.includes(line.dataset.line));
    picture.classList.toggle("some", litBoxes.length > 0);
  }
  const lightBox = (box) => light([box], linesOf(box));
  const lightLine = (number) => light(boxes.filter((box) => linesOf(box).includes(number)), [number]);
  const restore = () => (held ? held() : light([], []));

  /** What a box opens: box 3 of a picture, `KEY-b3`, the template `inside-KEY-3`. */
  const insideOf = (box) => document.getElementById(`inside-${box.id.replace(/b(\d+)$/, "$1")}`);

  function open(box) {
    const inside = insideOf(box);
    if (!inside) return;
    dialog.querySelector("div").replaceChildren(inside.content.cloneNode(true));
    for (const inner of dialog.querySelectorAll(".box")) {
      inner.classList.toggle("opens", insideOf(inner) !== null);
      inner.addEventListener("click", (event) => {
        event.preventDefault();
        open(inner);
      });
    }
    if (!dialog.open) dialog.showModal();
  }

  for (const box of boxes) {
    box.classList.toggle("opens", insideOf(box) !== null);
    box.addEventListener("mouseenter", () => lightBox(box));
    box.addEventListener("mouseleave", restore);
    box.addEventListener("click", (event) => {
      event.preventDefault(); // the link to the line is for readers without scripts
      held = () => lightBox(box);
      held();
      open(box);
    });
  }
  for (const line of lines) {
    const number = line.dataset.line;
    if (!boxes.some((box) => linesOf(box).includes(number))) continue;
    line.classList.add("linked");
    line.addEventListener("mouseenter", () => lightLine(number));
    line.addEventListener("mouseleave", restore);
    line.addEventListener("click", () => {
      held = () => lightLine(number);
      held();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || dialog.open) return;
    held = null;
    restore();
  });
})();

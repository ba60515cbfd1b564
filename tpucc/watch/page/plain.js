/** The editor where CodeMirror isn't: a text area with line numbers, with the interface of `editor.js`. It has no colours. */

export const languages = { model: () => null };

const INDENT = "    ";

/**
 * @param {HTMLElement} place
 * @param {object} language
 * @param {string} label what a screen reader says
 * @param {() => void} changed
 */
export function editor(place, language, label, changed) {
  const area = Object.assign(document.createElement("textarea"), { spellcheck: false, wrap: "off", ariaLabel: label });
  const lines = numbers(area);
  const box = Object.assign(document.createElement("div"), { className: "plain" });
  box.append(lines.list, area);
  place.append(box);
  indents(area);
  area.addEventListener("input", () => {
    lines.count();
    changed();
  });

  function write(text) {
    area.value = text;
    lines.count();
    lines.mark([]);
  }

  return { write, follow: write, text: () => area.value, mark: lines.mark, go: (line, column) => go(area, line, column) };
}

/** The numbers of an area's lines, which scroll with it; those of lines with errors or warnings are marked. */
function numbers(area) {
  const list = Object.assign(document.createElement("ol"), { ariaHidden: "true" });
  const follow = () => (list.scrollTop = area.scrollTop);
  area.addEventListener("scroll", follow);

  function count() {
    const wanted = area.value.split("\n").length;
    while (list.childElementCount > wanted) list.lastElementChild.remove();
    while (list.childElementCount < wanted) list.append(document.createElement("li"));
    follow();
  }

  function mark(diagnostics) {
    for (const item of list.children) item.className = "";
    for (const { spans, severity } of diagnostics) {
      const item = list.children[spans[0]?.line - 1];
      if (item && item.className !== "error") item.className = severity;
    }
  }

  return { list, count, mark };
}

/** Tab indents; after Escape it leads out of the area, as in CodeMirror. */
function indents(area) {
  let leaves = false;
  area.addEventListener("keydown", (event) => {
    const changed = event.shiftKey || event.ctrlKey || event.altKey || event.metaKey;
    const here = event.key === "Tab" && !leaves && !changed;
    leaves = event.key === "Escape";
    if (!here) return;
    event.preventDefault();
    document.execCommand("insertText", false, INDENT); // what is written in any other way can't be undone
  });
}

/** Puts the place of a line and a column, which count from one and in whole characters, into the upper half of the area. */
function go(area, line, column) {
  const lines = area.value.split("\n");
  const before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const at = before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  area.focus();
  area.setSelectionRange(at, at);
  area.scrollTop = (area.scrollHeight * (line - 5)) / lines.length;
}

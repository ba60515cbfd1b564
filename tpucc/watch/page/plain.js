/** The editor where CodeMirror isn't: a text area, with the interface of `editor.js`. It has no colours, and marks nothing. */

export const languages = { model: () => null };

/**
 * @param {HTMLElement} place
 * @param {object} language
 * @param {string} label what a screen reader says
 * @param {() => void} changed
 */
export function editor(place, language, label, changed) {
  const area = Object.assign(document.createElement("textarea"), { className: "plain", spellcheck: false, wrap: "off", ariaLabel: label });
  area.addEventListener("input", changed);
  place.append(area);

  function write(text) {
    area.value = text;
  }

  /** Puts the place of a line and a column, which count from one and in whole characters, into the upper half of the area. */
  function go(line, column) {
    const lines = area.value.split("\n");
    const before = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const at = before + [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
    area.focus();
    area.setSelectionRange(at, at);
    area.scrollTop = (area.scrollHeight * (line - 5)) / lines.length;
  }

  return { write, follow: write, text: () => area.value, mark: () => {}, go };
}

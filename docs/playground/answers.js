/** What requests are about, and what their answers say, as boxes and as marks in the text. */
import { box, make } from "./boxes.js";

/** The model that a request is about: of two, the one in the editor. */
export const modelIn = (request) => request.b ?? request;

/** The Python that a request holds. */
export const pythonIn = ({ passes, stages }) => passes ?? Object.values(stages)[0];

export const said = (text, kind = "") => make("div", { className: `message ${kind}` }, make("pre", {}, text));
export const sentence = (text, kind = "") => make("div", { className: `message ${kind}` }, make("p", {}, text));
export const printed = (answer) => (answer.printed ? [said(`printed:\n${answer.printed}`)] : []);

const BROKEN = "Python has broken down. Nested calls without an end can do that, and values that are too large. It begins anew.";
export const broken = () => sentence(BROKEN, "error");

/** The line that a verdict speaks of, to be underlined. */
export function lineIn({ line, text }) {
  return line ? [{ code: "here", severity: "error", message: text, spans: [{ line, column: 1, end_line: line, end_column: 200 }] }] : [];
}

/** Underlines what is said of a text, and gives the editor that leads there: where it has another text by now, neither. */
export function marked(editor, text, diagnostics) {
  const same = editor.text() === text;
  editor.mark(same ? diagnostics : []);
  return same ? editor : null;
}

export const inPython = (found) => Boolean(found.file?.endsWith(".py"));

/**
 * What is said beside the Python, as boxes: of it, or of the first tab, which is then named.
 *
 * @param {object[]} diagnostics
 * @param {{name: string, place: object | null}} python what the Python is called, and what leads there
 * @param {{name: string, place: object | null}} model the same of the first tab's text
 */
export function besidePython(diagnostics, python, model) {
  return diagnostics.map((found) => {
    if (inPython(found)) return box({ ...found, file: python.name }, python.place);
    return box(found.file ? { ...found, file: `Model tab, ${found.file}` } : found, found.file === model.name ? model.place : null);
  });
}

/** The first tab's text that a request has, and what leads there while it is that one. @param {() => void} choose shows that tab */
export function tabOfModel(request, source, choose) {
  const { name, source: text } = modelIn(request);
  const go = (...where) => {
    choose();
    source.go(...where);
  };
  return { name, place: text === source.text() ? { go } : null };
}

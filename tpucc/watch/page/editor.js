/** The editors: CodeMirror with the languages' colours, and diagnostics at their places. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { python } from "@codemirror/legacy-modes/mode/python";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--matrix-line)", fontWeight: "bold" },
  { tag: [tags.typeName, tags.standard(tags.variableName)], color: "var(--boundary-line)" },
  { tag: [tags.number, tags.bool], color: "color-mix(in srgb, var(--weights-line), var(--ink) 35%)" },
  { tag: tags.string, color: "var(--vector-line)" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.meta, color: "var(--boundary-line)" },
]);
const LOOK = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--paper)" },
  ".cm-gutters": { color: "var(--soft)", backgroundColor: "var(--paper)", borderRight: "1px solid var(--grid)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--band) 60%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--mark)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-tooltip": { color: "var(--ink)", backgroundColor: "var(--band)", border: "1px solid var(--rule)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--alarm)", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warning)", textUnderlineOffset: "3px" },
});

/**
 * A language whose words are known: pairs of an expression and the colour of what it matches, tried in their order.
 *
 * @param {string} name
 * @param {[RegExp, string | ((word: string) => string | null) | null][]} rules
 * @param {string} comment what a comment begins with
 */
function simple(name, rules, comment) {
  function token(stream) {
    if (stream.eatSpace()) return null;
    const found = rules.find(([pattern]) => stream.match(pattern));
    if (!found) stream.next();
    return typeof found?.[1] === "function" ? found[1](stream.current()) : (found?.[1] ?? null);
  }
  return StreamLanguage.define({ name, token, languageData: { commentTokens: { line: comment } } });
}

/**
 * The colours of a source.
 *
 * @param {{keywords: string[], functions: string[], types: string[]}} words those of the language
 */
function model(words) {
  const kinds = new Map([
    ...words.functions.map((word) => [word, "variableName.standard"]),
    ...words.types.map((word) => [word, "typeName"]),
    ...words.keywords.map((word) => [word, "keyword"]),
  ]);
  const word = (found) => kinds.get(found) ?? null;
  return simple("tpu", [[/^#.*/, "comment"], [/^"(?:[^"\\]|\\.)*"?/, "string"], [/^\d[\w.]*(?:[eE][-+]?\d+)?/, "number"], [/^[A-Za-z_]\w*/, word]], "#");
}

const listing = simple("asm", [[/^[;|].*/, "comment"], [/^\.\w+/, "meta"], [/^-?\b\d[\w.]*/, "number"], [/^[a-z]\w*(?==)/, "typeName"], [/^[a-z_]\w*/, "keyword"]], ";");

export const languages = { model, listing: () => listing, python: () => StreamLanguage.define(python) };

/** The one change that makes a text of another: what they begin and end with in common stays. */
function difference(old, text) {
  const least = Math.min(old.length, text.length);
  let [from, same] = [0, 0];
  while (from < least && old[from] === text[from]) from += 1;
  while (same < least - from && old.at(-1 - same) === text.at(-1 - same)) same += 1;
  return { from, to: old.length - same, insert: text.slice(from, text.length - same) };
}

/**
 * An editor in an element. `changed` hears of what the visitor writes, not of `write` and `follow`.
 *
 * @param {HTMLElement} place
 * @param {object} language
 * @param {string} label what a screen reader says
 * @param {() => void} changed
 * @param {() => unknown} run on Ctrl-Enter
 */
export function editor(place, language, label, changed, run) {
  const keys = Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => run() || true }]));
  const heard = EditorView.updateListener.of((update) => update.docChanged && !writing && changed());
  const extensions = [
    keys, lineNumbers(), lintGutter(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(),
    indentUnit.of("    "), language, syntaxHighlighting(COLOURS), LOOK, heard,
    EditorView.contentAttributes.of({ "aria-label": label }),
    keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
  ];
  let writing = false;
  const view = new EditorView({ parent: place, state: EditorState.create({ extensions }) });

  /** @param {string} text @param {boolean} locked the visitor can read it, and not change it */
  function write(text, locked = false) {
    writing = true;
    view.setState(EditorState.create({ doc: text, extensions: [...extensions, EditorState.readOnly.of(locked)] }));
    writing = false;
  }

  /** Another text, of which the visitor keeps the place and may undo the difference. */
  function follow(text) {
    writing = true;
    view.dispatch({ changes: difference(view.state.doc.toString(), text) });
    writing = false;
  }

  /** The place of a line and a column, which count from one and in whole characters. */
  function at(line, column) {
    const found = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
    return found.from + [...found.text].slice(0, column - 1).join("").length;
  }

  /** Underlines what diagnostics speak of, each at its first place. */
  function mark(diagnostics) {
    const marks = diagnostics.filter((found) => found.spans.length > 0).map((found) => {
      const span = found.spans[0];
      const from = at(span.line, span.column);
      return { from, to: Math.max(from, at(span.end_line, span.end_column)), severity: found.severity, message: `${found.code}: ${found.message}` };
    });
    view.dispatch(setDiagnostics(view.state, marks));
  }

  function go(line, column) {
    view.dispatch({ selection: { anchor: at(line, column) }, scrollIntoView: true });
    view.focus();
  }

  return { write, follow, text: () => view.state.doc.toString(), mark, go };
}

"""The report: one self-contained page that links source, graph, tiles, instructions, buffer and time through their origins.

It is plain HTML, CSS and JavaScript, in files of their own in this folder, without a framework or a network. `payload` is the data that
the scripts work on, `summary` what is there without them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from tpucc.diagnostics import counted, printable
from tpucc.explain.attribution import attribution
from tpucc.explain.names import shown
from tpucc.explain.nesting import Source, calls_of
from tpucc.explain.summary import answers, machine_of, share
from tpucc.prose import percent
from tpucc.see.charts.strip import strip_svg
from tpucc.see.diagrams.render import drawn_as_it_is
from tpucc.see.kit import NARROW, THEME, by_width, embedded, page_files, page_template, scripts, shell
from tpucc.see.page.life import life_view
from tpucc.see.page.losses import error_view, ranges_view
from tpucc.see.page.machine import machine_view
from tpucc.see.page.payload import PageInput, payload, source_lines
from tpucc.see.page.summary import summary
from tpucc.see.page.what_if import what_if_view
from tpucc.see.palette import picture_rules
from tpucc.see.pictures import peak_of, roofline_of
from tpucc.see.svg import Markup, escaped, inlined, joined, tag
from tpucc.sim.durations import duration

__all__ = ["KEYWORDS", "SCRIPTS", "PageInput", "coloured", "page"]

SCRIPTS = (
    "decode", "dom", "theme", "model", "links", "selection", "insides", "words", "tips", "panes", "source", "zooming", "diagrams",
    "tiles", "list", "assembly", "film", "passes", "lanes", "axis", "colours", "band", "retiming", "why", "timeline", "buffer",
    "machine_state", "machine_contents", "machine_plan", "machine_player", "accounting", "inspector", "search", "what_if", "views",
    "keyboard", "tour", "machine_hardware", "main",
)  # fmt: skip
"""The files of `js/` in their order; together they are one script."""
TITLES = {"graph": "Graph", "layers": "Layers", "program": "Dataflow"}
"""The names of the diagrams' tabs."""
QUESTIONS = {
    "Where does time go?": ("summary", "roofline", "whatif"),
    "What is it?": ("graph", "layers", "passes"),
    "How does it run?": ("machine", "byte", "tiles", "program", "assembly"),
    "Is it right?": ("error",),
}
"""What a reader asks, in the order of the page, and the tabs that answer it."""
WIDTH, HEIGHT = 660.0, 300.0
"""The width of a chart, which has panes beside it, and the height of its axis."""


def page(given: PageInput) -> str:
    """The page as HTML."""
    title, tabs = f"{shown(given.runtime.stats['model'])} on {shown(machine_of(given.runtime.stats))}", _tabs(given)
    body = page_template(__package__, "page.html").substitute(
        title=escaped(title),
        facts=" · ".join(tag("span", escaped(fact)) for fact in _facts(given)),
        theme=THEME,
        source=_source(given),
        tabs=joined(_tab_lists({name: title for name, title, _ in tabs})),
        views=joined(_view(*tab) for tab in tabs),
        insides=joined(_templates(given)),
        data=embedded(payload(given)),
    )
    return shell(
        title,
        body,
        style=picture_rules() + "\n" + page_files(__package__, "page.css", "machine.css", "hardware.css"),
        script=scripts(__package__, SCRIPTS),
    )


def _facts(given: PageInput) -> Iterator[str]:
    """The head of the page in a few words: `98.3 % in int8 (98.4 % in float32)`, `505 µs end to end`, `weight memory bound`."""
    stats, accuracy = given.runtime.stats, given.accuracy
    if accuracy is not None:
        yield f"{share(accuracy.quantised)} right in {given.runtime.integers} ({share(accuracy.float32)} in float32)"
    yield f"{duration(stats['end_to_end']['seconds'])} end to end"
    yield counted(stats["cycles"], "cycle")
    yield f"{printable(stats['end_to_end']['bottleneck'])} bound"


def _tabs(given: PageInput) -> list[tuple[str, str, Markup]]:
    """Name, title and content of each tab, in the order of the questions. The content is empty if scripts draw it."""
    empty, runtime = Markup(""), given.runtime
    tries = next((text for word, text in answers(runtime.stats, runtime.faster) if word == "try"), "")
    peak = by_width("cells", peak_of(runtime, WIDTH, tries), peak_of(runtime, NARROW, tries))
    roofline = by_width("roofline", roofline_of(runtime, WIDTH, HEIGHT), roofline_of(runtime, NARROW, HEIGHT))
    strip = by_width("strip", strip_svg(runtime, given.accuracy, WIDTH), strip_svg(runtime, given.accuracy, NARROW))
    hero = joined([tag("div", strip, class_="strip has-narrow"), tag("div", peak, class_="peak has-narrow")])
    found = [("summary", "Summary", summary(runtime.stats, given.accuracy, given.notes, hero, runtime.faster))]
    found += [(name, TITLES[name], _picture(inlined(given.diagrams[name].svg), "picture")) for name in TITLES if name in given.diagrams]
    found += [("tiles", "Tiles", empty), ("assembly", "Assembly", empty), ("machine", "Machine", machine_view(given.program))]
    found += [("byte", "Byte", life_view(given.program, given.life, given.times.cycles, WIDTH))]
    found += [("passes", "Passes", empty)] if given.stages else []
    found += [("roofline", "Roofline", _picture(roofline, "picture chart has-narrow"))]
    found += [("whatif", "What if", what_if_view(runtime))]
    if given.errors:
        name = given.program.title
        ranges = tag("div", ranges_view(name, given.errors), id="ranges")
        found.append(("error", "Error", joined([error_view(name, given.errors, quantised=given.quantised), ranges])))
    order = [name for names in QUESTIONS.values() for name in names]
    return sorted(found, key=lambda tab: order.index(tab[0]))


def _picture(drawn: Markup, classes: str) -> Markup:
    return tag("div", drawn, class_=classes, tabindex=0)


def _templates(given: PageInput) -> Iterator[Markup]:
    """Pictures that wait to be shown: no part of the document until then."""
    waiting = [(f"inside-{inside.name}", inside.diagram) for inside in given.insides]
    for number, each in enumerate(given.rewrites):
        waiting += [(f"rewrite-{number}-before", each.before), (f"rewrite-{number}-after", each.after)]
    for name, diagram in waiting:
        if diagram is not None:
            yield Markup(str(tag("template", inlined(drawn_as_it_is(diagram)), id=name)) + "\n")


def _tab_lists(titles: Mapping[str, str]) -> Iterator[Markup]:
    """For each question that tabs answer a list of these, under its words."""
    for number, (question, names) in enumerate(QUESTIONS.items()):
        if own := [_tab(name, titles[name]) for name in names if name in titles]:
            words = tag("span", escaped(question), id=f"question-{number}")
            yield tag("div", words, tag("div", joined(own), attributes={"role": "tablist", "aria-labelledby": f"question-{number}"}))


def _tab(name: str, title: str) -> Markup:
    on = "true" if name == "summary" else "false"
    attributes = {"role": "tab", "id": f"tab-{name}", "aria-controls": f"view-{name}", "aria-selected": on, "data-view": name}
    return tag("button", escaped(title), attributes=attributes)


def _view(name: str, title: str, body: Markup) -> Markup:
    attributes = {"role": "tabpanel", "id": f"view-{name}", "aria-labelledby": f"tab-{name}", "data-title": title}
    return Markup(str(tag("section", body or Markup(" "), attributes=attributes, class_="view")) + "\n")


def _source(given: PageInput) -> Markup:
    """The source with its line numbers, and for each line a bar for its share of the cycles, as the panel has it."""
    text, stats = given.program.source_text, given.runtime.stats
    source, cycles = Source.of(source_lines(text)), Counter[int]()
    for layer, counts in zip(attribution(given.program).layers, stats["layers"], strict=True):
        heads = {source.line_of_def(call.name) for call in calls_of(layer.origin, source)}
        cycles.update(dict.fromkeys(layer.origin.lines | heads, counts["cycles"]))
    most = max(cycles.values(), default=0)
    return joined(
        _line(number, line, _bar(cycles[number], bool(source.definition(number)), most, stats["cycles"]))
        for number, line in enumerate(source.lines, 1)
    )


def _bar(cycles: int, is_in_def: bool, most: int, whole: int) -> Markup:
    """The bar beside a line, of all layers that it has a part in: a hollow one in a `def`, whose calls have lines of their own; nothing
    without cycles."""
    if not cycles:
        return Markup("")
    words = f"{counted(cycles, 'cycle')}, {percent(cycles, whole)}"
    title = f"{words}: the sum of all calls of the def" if is_in_def else words
    return tag("span", title=title, class_="sum" if is_in_def else None, style=f"width:{100 * cycles / most:.1f}%")


def _line(number: int, text: str, bar: Markup) -> Markup:
    gutter = Markup(f"<b>{number}</b><i>{bar}</i>")
    return Markup(f'<div id="line-{number}" data-line="{number}">{gutter}<code>{coloured(text)}</code></div>\n')


KEYWORDS = ("and", "def", "elif", "else", "False", "for", "if", "in", "not", "or", "pass", "return", "True")
"""The keywords of the language, from which the page may import nothing."""
DIRECTIVES = ("param", "weights", "calibration", "weight", "state", "model", "examples", "optimizer", "train")
"""Words that begin a statement, and are names elsewhere."""
_TOKEN = re.compile(
    rf"""
      (?P<comment>\#.*)
    | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<keyword>\b(?:{"|".join(KEYWORDS)})\b|^\s*(?:{"|".join(DIRECTIVES)})\b(?=\s+["\w]|\())
    | (?P<number>(?<![\w.])(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
    | (?P<call>[^\W\d]\w*(?=\s*\())
    | \w+
    """,
    re.VERBOSE,
)


def coloured(line: str) -> Markup:
    """A line of the source, as it is shown. The classes of tokens are those of `SOURCE_INKS`: `t-keyword`, `t-number` and so on."""
    return joined(_pieces(line))


def _pieces(line: str) -> Iterator[Markup]:
    at = 0
    for found in _TOKEN.finditer(line):
        if found.lastgroup is not None:
            yield escaped(line[at : found.start()])
            yield tag("span", escaped(found.group()), class_=f"t-{found.lastgroup}")
            at = found.end()
    yield escaped(line[at:])

"""Pages of pictures alone, which need no scripts: a program as the machine runs it, and what passes rewrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpucc.diagnostics import counted, printable
from tpucc.explain.timed import Timed
from tpucc.ir import Graph
from tpucc.see.diagrams.render import drawn_as_it_is
from tpucc.see.diagrams.rewrites import rewrites
from tpucc.see.kit import Section, document, soft
from tpucc.see.pictures import memory_of, program_svg, timeline_of
from tpucc.see.svg import Markup, inlined, joined, tag

KIT = "tpucc.see.kit"
PICTURES = (
    ("timeline", "The units", timeline_of),
    ("memory", "The unified buffer", memory_of),
    ("program", "What each instruction reads and writes", program_svg),
)


def program_page(runtime: Timed, title: str) -> str:
    """The units over time, the rows of the unified buffer over the same time, and the instructions with what flows between them."""
    facts = f"{counted(len(runtime.program.instructions), 'instruction')}, {counted(runtime.timeline.makespan, 'cycle')}"
    sections = [(key, name, _picture(draw(runtime))) for key, name, draw in PICTURES]
    return document(KIT, title, facts, sections, (), sheet="drawn.css")


def rewrites_page(steps: Iterable[tuple[str, Graph, Graph]]) -> str:
    """For each step, by its pass, its graph before and its graph after it, the parts that changed, one beside the other."""
    sections = [section for number, step in enumerate(steps) for section in _rewritten(number, *step)]
    names = len({name for _, name, _ in sections})
    return document(KIT, "What your passes rewrote", counted(names, "kind") + " of rewrite", sections, (), sheet="drawn.css")


def _rewritten(number: int, name: str, before: Graph, after: Graph) -> Iterator[Section]:
    for place, found in enumerate(rewrites([before, after])):
        words = f"{printable(name)}, rewrite {place + 1}" + (f", {found.alike} times alike" if found.alike > 1 else "")
        sides = [("before", found.before, "nothing was there."), ("after", found.after, "nothing is left of it.")]
        drawn = [soft(f"{side}: {none}") if part is None else _picture(drawn_as_it_is(part)) for side, part, none in sides]
        yield f"rewrite-{number}-{place}", words, tag("div", joined(drawn), class_="sides")


def _picture(svg: str) -> Markup:
    return tag("div", inlined(svg), class_="chart", tabindex=0)

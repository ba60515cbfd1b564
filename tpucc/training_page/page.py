"""The page of a training: loss, held-out measure, gradients and ranges, the step graph linked to the source, rules, passes, settings.

It is a document. Nothing in it depends on when or where the training ran.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tpucc.diagnostics import counted, printable
from tpucc.explain.names import shown
from tpucc.explain.quantities import number, size
from tpucc.ir import Node
from tpucc.ir.literals import DataWriter
from tpucc.ir.printer import print_node
from tpucc.machines.v2.links import all_reduce, core_bandwidth
from tpucc.see.diagrams.collapse import Collapsed
from tpucc.see.diagrams.insides import insides
from tpucc.see.diagrams.operators import operator_diagram
from tpucc.see.diagrams.paint import painted
from tpucc.see.diagrams.render import drawn_as_it_is
from tpucc.see.kit import Section, document, numbers, soft
from tpucc.see.page.payload import source_lines
from tpucc.see.page.stages import ADDED, Stage, changes
from tpucc.see.svg import Markup, escaped, inlined, joined, row, table, tag
from tpucc.training.roles import Parts, Role, before, rules
from tpucc.training.session import HOST, Session, elements
from tpucc.training.timing.step_time import StepTime
from tpucc.training_page.curves import held_out_svg, loss_svg, norms_svg, ranges_svg
from tpucc.training_page.step_graph import KEY, StepPicture
from tpucc.training_page.step_time import step_time_svg
from tpucc.version import VERSION

SCRIPTS = ("theme", "page")
"""The files of the page's script, in their order."""
MOST_LINES = 400
"""Lines of a rule's or a pass's nodes that are shown."""


INSIDE = Markup(
    '<dialog id="inside" aria-label="what the box stands for"><form method="dialog"><button aria-label="close">✕</button></form>'
    '<div class="scroll"></div></dialog>\n'
)
"""Where what opens is shown."""


def training_page(session: Session, parts: Parts, drawn: StepPicture) -> str:
    """The page as HTML. `parts` and `drawn` are those of the session's step."""
    return document(
        __package__,
        f"{shown(session.model.graph.name)} trained on {_where(session)}",
        " · ".join(_facts(session)),
        list(_sections(session, parts, drawn)),
        SCRIPTS,
        after=joined([INSIDE, *_insides(parts, drawn)]),
    )


def _where(session: Session) -> str:
    settings = session.settings
    return "the host" if settings.target == HOST else f"{counted(settings.cores, 'core')} of {printable(settings.target)}"


def _facts(session: Session) -> Iterator[str]:
    state = session.state
    yield f"{counted(len(state.epochs), 'epoch')}, {counted(state.step, 'step')}"
    if state.epochs:
        last = state.epochs[-1]
        yield f"mean loss of the last epoch {last['loss']:.5f}"
        if "accuracy" in last["held_out"]:
            yield f"{100 * last['held_out']['accuracy']:.2f} % of held-out examples right"
        elif "rmse" in last["held_out"]:
            yield f"RMSE {last['held_out']['rmse']:.4g} on held-out examples"


def _sections(session: Session, parts: Parts, drawn: StepPicture) -> Iterator[Section]:
    epochs = session.state.epochs
    yield "summary", "Summary", numbers(_numbers(session, parts))
    if session.state.step:
        charts = [loss_svg([epoch.get("losses", [epoch["loss"]]) for epoch in epochs], session.state.losses)]
        charts += [held_out_svg([epoch["held_out"] for epoch in epochs])] if epochs and epochs[-1]["held_out"] else []
        yield "curves", "Loss", _charts(charts)
    if epochs:
        yield "weights", "Weights", _charts(_weights(session))
    yield "step", "Step graph", _step(session, drawn)
    yield "rules", "Rules", _rules(session)
    yield "passes", "Passes", _passes(session)
    if session.settings.target != HOST and session.rates.ici_bandwidth:
        yield "time", "Time", _time(session)
    yield "settings", "Settings", _settings(session)


def _weights(session: Session) -> Iterator[str]:
    """The gradients' norms, the ranges of the weights, and those of the statistics of batch normalisation."""
    epochs = session.state.epochs
    if norms := _series(epochs, lambda epoch: epoch["gradients"]):
        yield norms_svg(norms)
    known = _series(epochs, lambda epoch: epoch["ranges"])
    for key, arrays in zip(("ranges", "statistics"), session.divided, strict=True):
        if names := [name for name in arrays if name in known]:
            low, high = ({name: [pair[end] for pair in known[name]] for name in names} for end in (0, 1))
            yield ranges_svg(low, high, key)


def _numbers(session: Session, parts: Parts) -> Iterator[tuple[str, str, str]]:
    """Name, value and a remark."""
    examples = session.examples
    weights, statistics = session.divided
    yield "weights", f"{elements(weights):,}", counted(len(weights), "array")
    yield (
        "examples",
        f"{examples.count:,}",
        "made up, for want of others" if examples.synthetic else f"{counted(examples.steps, 'step')} an epoch",
    )
    yield (
        "batch",
        f"{examples.batch:,}",
        "" if session.parts == 1 else f"{counted(session.parts, 'part')} of {examples.batch // session.parts:,}",
    )
    remarks = {
        Role.STATISTICS: f"move {elements(statistics):,} averages of batch normalisation",
        Role.OPTIMIZER: str(session.training.optimizer),
        Role.BACKWARD: f"keeps {size(parts.kept_bytes)}" + (" a part" if session.parts > 1 else ""),
    }
    for role in filter(parts.count, Role):
        yield str(role), counted(parts.count(role), "operator"), remarks.get(role, "")
    yield "state", size(parts.state_bytes), counted(len(parts.states), "array")


def _charts(charts: Iterable[str]) -> Markup:
    return tag("div", joined(tag("div", inlined(chart), class_="chart") for chart in charts), class_="charts")


def _series(epochs: Sequence[Mapping[str, Any]], of: Any) -> dict[str, list[Any]]:
    """By key, what each epoch has, of the epochs with the keys of the last: those before a change of the source may have had others."""
    found = [of(epoch) for epoch in epochs]
    return {key: [each[key] for each in found if each.keys() == found[-1].keys()] for key in found[-1]}


def _step(session: Session, drawn: StepPicture) -> Markup:
    words = "Point at a box or a line to see what belongs together; click to hold it, Esc lets go. A double box opens."
    lines = enumerate(source_lines(session.source.text), 1)
    source = joined(Markup(f'<div id="line-{n}" data-line="{n}"><b>{n}</b><code>{escaped(text)}</code></div>\n') for n, text in lines)
    picture = tag("div", inlined(painted(drawn.diagram, drawn.layout)), class_="picture", tabindex=0)
    body = tag("div", tag("div", source, id="source", tabindex=0), picture, class_="step")
    return joined([soft(words), body])


def _insides(parts: Parts, drawn: StepPicture) -> Iterator[Markup]:
    """What opens: a template for each box that stands for several, as far as the budget goes."""
    whole = replace(operator_diagram(parts.graph), key=KEY)
    places = {box.called: index for index, box in enumerate(whole.boxes) if not box.small and box.title != "output"}
    members = tuple(tuple(sorted(places[name] for name in nodes if name in places)) for nodes in drawn.members)
    for inside in insides([(whole, Collapsed(drawn.diagram, members, (1,) * len(members)))]):
        if inside.diagram is not None:
            yield Markup(f"{tag('template', inlined(drawn_as_it_is(inside.diagram)), id=f'inside-{inside.name}')}\n")


def _rules(session: Session) -> Markup:
    """For each operator of the loss, the last one first, the nodes that its rule made."""
    found = rules(session.step)
    graph = before(session.step)
    data = DataWriter()
    lines = [node.origin.lines for node in graph if node.operands]
    common = frozenset.intersection(*lines) if lines else frozenset()
    rows = [_rule(node, common, found[node.name], data) for node in reversed(graph.nodes) if found[node.name]]
    words = "Differentiation goes through the operators from the loss backwards. Each operator's rule makes the gradients of what it reads."
    return joined([soft(words), *rows])


def _rule(node: Node, common: frozenset[int], made: Sequence[Node], data: DataWriter) -> Markup:
    numbers = sorted(n for n in node.origin.lines if n not in common)[:4]
    links = escaped(", ").join(tag("a", escaped(f"line {n}"), href=f"#line-{n}") for n in numbers)
    what = f"{node.op} {node.type.brief}" if node.operands else "gradients of several uses, added"
    head = joined([tag("strong", escaped(shown(node.name))), tag("span", escaped(f"{what} → {counted(len(made), 'node')}"), class_="soft")])
    lines = [tag("div", escaped(printable(print_node(each, data, origins=False)[:300]))) for each in made]
    body = [*([tag("div", Markup(links))] if links else []), *lines[:MOST_LINES]]
    return tag("details", tag("summary", head), tag("div", *body, class_="lines"))


def _passes(session: Session) -> Markup:
    """What each pass took away and added."""
    stages = [Stage(stage.name, stage.summary, stage.graph) for stage in session.step.stages]
    found = list(changes(stages))
    still = len(stages) - len(found)
    words = f"{counted(len(found), 'stage')} in order" + (f"; {still} more left the graph as it was." if still else ".")
    return joined([soft(words), *(_changed(stage, lines) for stage, lines in found)])


def _changed(stage: Stage, lines: Sequence[tuple[str, int]]) -> Markup:
    added = sum(kind == ADDED for _, kind in lines)
    counts = f"{stage.summary} · +{added:,} −{len(lines) - added:,} · {counted(len(stage.graph), 'node')}"
    head = joined([tag("strong", escaped(printable(stage.name))), tag("span", escaped(printable(counts)), class_="soft")])
    shown_ = [
        tag("div", escaped(f"{'+' if kind == ADDED else '−'} {printable(text)}"), class_="added" if kind == ADDED else "removed")
        for text, kind in lines
    ]
    rest = [tag("div", escaped(f"{len(lines) - MOST_LINES:,} more"))] if len(lines) > MOST_LINES else []
    return tag("details", tag("summary", head), tag("div", *shown_[:MOST_LINES], *rest, class_="lines"))


def _time(session: Session) -> Markup:
    """When the units are at work in a step, and what the exchange costs. With microbatches the steps' groups aren't those of one core."""
    if session.settings.microbatches > 1:
        return _costs(session)
    svg = step_time_svg(shown(session.model.graph.name), StepTime(session.step, session.rates))
    words = "By the work of its groups of operators and the rates of the machine; tpucc profile --train has the numbers."
    return joined([soft(words), _charts([svg]), _costs(session)])


def _costs(session: Session) -> Markup:
    """What an all-reduce costs on the numbers of cores that divide the batch."""
    reduced, rates = session.step.reduced_bytes, session.rates
    costs = [all_reduce(reduced, cores, rates) for cores in session.core_counts]
    words = (
        f"By formula from the rates of {rates.name}: each step takes the mean of {size(reduced)} over the cores, "
        f"with {rates.ici_bandwidth / 1e9:g} GB/s a link, "
        f"{core_bandwidth(rates) / 1e9:g} GB/s of memory a core inside a chip, and {1e6 * rates.ici_hop_seconds:g} µs a hop (assumed)."
    )
    rows = [map(escaped, (f"{c.cores:,}", size(c.sent), f"{c.hops:,}", f"{1e6 * c.seconds:,.1f}")) for c in costs]
    return joined([soft(words), table(("cores", "each sends", "hops", "µs"), [row(cells) for cells in rows])])


def _settings(session: Session) -> Markup:
    """What `history.json` has, but for the epochs."""
    pairs = {key: value for key, value in session.history.items() if key != "epochs"}
    pairs["optimizer"] = ", ".join(
        f"{name} {number(value) if isinstance(value, float) else value}" for name, value in pairs["optimizer"].items()
    )
    rows = [row(map(escaped, (key, printable(str(value))))) for key, value in pairs.items()]
    footer = tag("p", escaped(f"Written by tpucc {VERSION}."), class_="footer")
    return joined([table((), rows, class_="settings"), footer])

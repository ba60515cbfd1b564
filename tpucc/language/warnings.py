"""Warnings about a program that compiles without errors.

Some parts need not be there: inputs, weights and operations without an output, `def`s that nothing calls, statements after a `return`,
weights that `train` leaves as they are, and what only `train` reads in a file without one. And some weights are shared by all iterations of
a loop, because nothing says that each iteration has its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice, pairwise

import msgspec

from tpucc.diagnostics import Diagnostic, Label, Span
from tpucc.ir import Graph
from tpucc.ir.dataflow import needed_values
from tpucc.language import ast
from tpucc.language.directives import FOR_TRAINING
from tpucc.language.training import Training, needed_weights

MOST = 20
"""Warnings that one source gets about what could be left out; those about shared weights aren't counted."""
WORDS = {
    "input": ("W0201", "the input {name} isn't used", "no output depends on it, so any array will do; remove it, or use it"),
    "weight": ("W0202", "the weight {name} isn't used", "no output depends on it; remove it, or use it"),
    "": ("W0203", "what this line computes isn't used", "no output depends on it, and it's left out; remove it, or return it"),
}


def warnings_of(module: ast.Module, graph: Graph, training: Training | None, repeated: Collection[Span]) -> tuple[Diagnostic, ...]:
    """A warning for each weight that the iterations of a loop share, and then one for each place of the source that could be left out.

    `repeated` are the weights without a key that were declared more than once in one call of their function.
    """
    graphs = (graph,) if training is None else (graph, training.graph)
    of_training = _without_train(module) if training is None else _not_trained(module, graph, training)
    of_syntax = (*_definitions(module), *_unreached(module))
    found = {diagnostic.labels[0].span: diagnostic for diagnostic in (*_nodes(graphs), *of_syntax, *of_training)}
    return (*_shared(module, repeated), *islice((found[span] for span in sorted(found)), MOST))


def _shared(module: ast.Module, repeated: Collection[Span]) -> Iterator[Diagnostic]:
    """The weights without a key that several iterations of a loop declare: the key is the name, in every iteration."""
    for item in (item for item in module.items if isinstance(item, ast.Def | ast.ModelDef)):
        loops = [statement for statement in ast.statements(item.body) if isinstance(statement, ast.For)]
        innermost = {each.span: (each, loop) for loop in loops for each in ast.statements(loop.body) if isinstance(each, ast.Weight)}
        for weight, loop in (found for span, found in innermost.items() if span in repeated):
            name, turn = weight.name.text, loop.target.text if isinstance(loop.target, ast.Identifier) else "i"
            own = f'for one in each turn, give it a key with the turn in it: = "{name}{{{turn}}}"'
            help = f"{own}; for one in all, declare it before the loop"
            yield _warning("W0208", f"all turns of the loop have one weight {name}", weight.name.span, help)


def _nodes(graphs: Sequence[Graph]) -> Iterator[Diagnostic]:
    """Inputs and weights that no output depends on, and operations that nothing reads.

    A line in the body of a `def` or of a loop runs several times; it counts as used if at least one run is used. A line of the model counts
    as used if the model's graph or the graph of `train` needs it.
    """
    lives = [needed_values(graph) for graph in graphs]
    used = {span for graph, live in zip(graphs, lives, strict=True) for node in graph if node.name in live for span in node.origin.spans}
    for graph, live in zip(graphs, lives, strict=True):
        for node in graph:
            ends = not graph.users[node.name] or node.op in WORDS
            if node.name not in live and ends and node.origin.spans and used.isdisjoint(node.origin.spans):
                code, message, help = WORDS.get(node.op, WORDS[""])
                yield _warning(code, message.format(name=node.name), node.origin.spans[0], help)


def _not_trained(module: ast.Module, graph: Graph, training: Training) -> Iterator[Diagnostic]:
    """A `train` that doesn't call the model; else, weights of the model that the loss doesn't depend on, without those that are fixed."""
    train, model = module.of(ast.TrainDef)[0], module.of(ast.ModelDef)[0]
    if model.name.text not in _reached(module, train):
        help = f"it is trained alone; to train the model, call it: {model.name.text}(…)"
        yield _warning("W0206", f"train doesn't call the model {model.name.text}", train.span, help)
        return
    for key, node in needed_weights(graph).items():
        if key not in training.trained and key not in training.fixed:
            help = "it isn't trained; use it in the loss, or say so: write fixed behind its declaration"
            yield _warning("W0205", f'the loss doesn\'t depend on the weight "{key}"', node.origin.spans[0], help)


def _without_train(module: ast.Module) -> Iterator[Diagnostic]:
    """Directives and words that only `train` reads."""
    for directive in module.of(ast.Directive):
        if directive.keyword in FOR_TRAINING:
            message = f"{directive.keyword} does nothing in a file without train"
            yield _warning("W0207", message, directive.span, "remove it, or add train(…):")
    for item in (item for item in module.items if isinstance(item, ast.Def | ast.ModelDef)):
        for statement in ast.statements(item.body):
            if isinstance(statement, ast.Weight) and statement.fixed:
                yield _warning("W0207", "fixed does nothing in a file without train", statement.fixed, "remove it, or add train(…):")


def _reached(module: ast.Module, train: ast.TrainDef) -> set[str]:
    """The names of the functions that `train` calls, or a `def` that it calls."""
    found, open_ = set[str](), set(_called(train))
    while open_:
        found |= open_
        open_ = {name for item in module.items if isinstance(item, ast.Def) and item.name.text in open_ for name in _called(item)} - found
    return found


def _definitions(module: ast.Module) -> Iterator[Diagnostic]:
    """The `def`s that nothing but themselves calls."""
    called = [frozenset(_called(item)) for item in module.items]
    callers = Counter(chain.from_iterable(called))
    for item, own in zip(module.items, called, strict=True):
        if isinstance(item, ast.Def) and callers[item.name.text] == int(item.name.text in own):
            yield _warning("W0204", f"{item.name.text} is never called", item.name.span, "remove it, or call it")


def _unreached(module: ast.Module) -> Iterator[Diagnostic]:
    """The first statement of each block that comes after a `return`, or after an `if` all of whose branches return."""
    for item in (item for item in module.items if isinstance(item, ast.Def | ast.ModelDef | ast.TrainDef)):
        nested = (block for statement in ast.statements(item.body) for block in ast.blocks(statement))
        for block in (item.body, *nested):
            for after in islice((later for before, later in pairwise(block) if _returns(before)), 1):
                yield _warning("W0209", "this never runs: a return comes before it", after.span, "remove it, or the return")


def _returns(statement: ast.Statement) -> bool:
    """Whether nothing after a statement runs, whatever its conditions are."""
    if isinstance(statement, ast.If):
        return all(any(map(_returns, block)) for block in ast.blocks(statement))
    return isinstance(statement, ast.Return)


def _called(value: object) -> Iterator[str]:
    """The names of the functions that a part of the syntax tree calls."""
    if isinstance(value, ast.Call) and isinstance(value.function, ast.Name):
        yield value.function.text
    if isinstance(value, tuple):
        for part in value:
            yield from _called(part)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _called(getattr(value, field))


def _warning(code: str, message: str, span: Span, help: str) -> Diagnostic:
    return Diagnostic(code, message, (Label(span),), (help,), "warning")

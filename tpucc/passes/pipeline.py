"""The passes in their order, which of them a compilation runs, and how one is run and its result verified."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING

from tpucc.diagnostics import Diagnostic, Error, InternalError, LimitError, UsageError, did_you_mean
from tpucc.ir import Graph
from tpucc.ir.verify import changed_nodes, verify_graph
from tpucc.layers.kinds import LAYERS
from tpucc.layers.verify import verify_layers
from tpucc.ops.verify import verify_operators
from tpucc.passes.base import Context, Pass, UserPass, options_of, with_options
from tpucc.passes.batch_norm import column_factors, decompose_batch_norm
from tpucc.passes.batch_products import batch_products
from tpucc.passes.biases import hoist_activations, reassociate_bias, sink_views
from tpucc.passes.calibrate import calibrate
from tpucc.passes.common_subexpressions import common_subexpressions
from tpucc.passes.constant_folding import constant_folding
from tpucc.passes.dead_code import dead_code
from tpucc.passes.depthwise import depthwise
from tpucc.passes.device_forms import computed_kernels, copy_pixels, device_forms, shuffle_lanes
from tpucc.passes.divide_batch import divide_batch
from tpucc.passes.explicit_quantisation import explicit_quantisation
from tpucc.passes.flatten_to_convolution import flatten_to_convolution
from tpucc.passes.folding import fold_padding, fold_scales, fold_slices
from tpucc.passes.fuse_activation import fuse_activation
from tpucc.passes.fuse_bias import fuse_bias
from tpucc.passes.move_integers import hoist_dequantize, move_integers
from tpucc.passes.pack_patches import pack_patches
from tpucc.passes.place import place
from tpucc.passes.push_slices import push_slices
from tpucc.passes.quantise import quantise
from tpucc.passes.sink_transposes import sink_transposes
from tpucc.passes.split_maps import split_maps
from tpucc.passes.write_weights import write_weights

PASSES: tuple[Pass, ...] = (
    dead_code,
    constant_folding,
    copy_pixels,
    shuffle_lanes,
    computed_kernels,
    device_forms,
    decompose_batch_norm,
    sink_transposes,
    fold_scales,
    fold_padding,
    hoist_activations,
    flatten_to_convolution,
    sink_views,
    fold_slices,
    push_slices(rows=False),
    fold_scales,
    constant_folding,
    common_subexpressions,
    batch_products,
    reassociate_bias,
    hoist_dequantize,
    dead_code,
    write_weights,
    place,
    column_factors,
    explicit_quantisation,
    pack_patches,
    calibrate,
    fuse_bias,
    fuse_activation,
    split_maps,
    quantise,
    move_integers,
    depthwise,
    divide_batch,
)
"""The passes in their order. One may stand twice, where another makes new work for it."""

LEVELS = (0, 1, 2)


def pipeline(
    level: int,
    extra: Sequence[Pass],
    settings: Mapping[str, Mapping[str, object]],
    omit: Collection[str],
    include: Collection[str] = (),
) -> tuple[Pass, ...]:
    """The passes of a level of optimisation, in order.

    `extra` are passes that the user brought, which join or replace the built-in ones; `settings` maps a pass's name to its options; `omit`
    names optional passes to leave out, and `include` those to run whatever their level. Raises `UsageError`.
    """
    if level not in LEVELS:
        raise UsageError(Diagnostic("E0518", f"the level of optimisation is 0, 1 or 2, found {level}"))
    passes = list(PASSES)
    for added in extra:
        _insert(passes, added)
    names = {p.name for p in passes}
    for name in (*settings, *omit, *include):
        if name not in names:
            raise unknown_name("pass", name, sorted(names))
    required = {p.name for p in passes if p.level == 0}
    if blocked := sorted(required.intersection(omit)):
        raise UsageError(Diagnostic("E0506", f"compiling needs the pass {blocked[0]}; it can't be left out"))
    return tuple(_configured(p, settings.get(p.name, {})) for p in passes if (p.level <= level or p.name in include) and p.name not in omit)


def replacements(steps: Iterable[Pass]) -> Iterator[str]:
    """A note of each pass of the user's that has the name of a built-in one, and so its place and its duty."""
    built_in = {step.name: step for step in PASSES}
    for step in dict.fromkeys(step for step in steps if isinstance(step, UserPass) and step.name in built_in):
        own = built_in[step.name]
        duty = ". It must do so too: compiling needs it. A pass of another name is added to tpucc's" if own.level == 0 else ""
        yield f"the pass {step.name}{_place(step)} stands in the place of tpucc's own, which {own.summary}{duty}"


def _insert(passes: list[Pass], added: Pass) -> None:
    """A pass from outside replaces the built-in of its name, or goes after the one it names in `after`; else before the pass `place`."""
    same = [index for index, p in enumerate(passes) if p.name == added.name]
    if same:
        for index in same:
            passes[index] = added
        return
    after = added.after if isinstance(added, UserPass) else None
    names = [p.name for p in passes]
    if after is not None and after not in names:
        raise unknown_name("pass", after, names, f", after which the pass {added.name} is to run{_place(added)}")
    passes.insert(len(names) - names[::-1].index(after) if after else names.index(place.name), added)


def _configured(step: Pass, settings: Mapping[str, object]) -> Pass:
    options = options_of(step)
    for name, value in settings.items():
        if name not in options:
            raise unknown_name(f"option of {step.name}", name, sorted(options))
        if not _fits(value, options[name]):
            raise UsageError(Diagnostic("E0518", f"{name} of {step.name} is like {options[name]!r}, found {value!r}"))
    return with_options(step, settings)


def _fits(value: object, default: object) -> bool:
    """Whether an option's value is of its default's type; an option whose default is none takes anything."""
    kind = (int, float) if isinstance(default, float) else type(default)
    return default is MISSING or default is None or isinstance(value, kind)


def _place(added: Pass) -> str:
    """Where a pass of the user's is written: ` (mine.py:12)`."""
    return f" ({added.code.place})" if isinstance(added, UserPass) and added.code.file else ""


def unknown_name(kind: str, name: str, known: Sequence[str], why: str = "") -> UsageError:
    """The error of a name that is none of `known`; `why` continues the message."""
    near = did_you_mean(name, known)
    return UsageError(Diagnostic("E0509", f"no {kind} is named {name}{why}", help=(near, f"there are {', '.join(known)}")))


# Running one pass: its result is verified, and an error in it names the pass.


def run_pass(step: Pass, graph: Graph, context: Context) -> Graph:
    """Runs one pass on a graph that keeps the rules, and verifies what it changed.

    A fault in a pass of tpucc's is an `InternalError` that names it, want of memory a limit. A pass of the user's verifies its result
    itself, and raises `PluginError`.
    """
    graph = graph.without_firings()
    try:
        result = step.run(graph, context)
    except Error:
        raise
    except MemoryError:
        raise LimitError(Diagnostic("E0613", f"out of memory in the pass {step.name}; smaller tensors need less")) from None
    except Exception as error:
        raise InternalError(Diagnostic("E0901", f"the pass {step.name} failed: {type(error).__name__}: {error}")) from error
    if isinstance(step, UserPass):
        return result
    if not isinstance(result, Graph):
        raise InternalError(Diagnostic("E0902", f"the pass {step.name} returned {type(result).__name__}, expected a Graph"))
    try:
        verify_stage(result, graph)
    except Error as error:
        head = Diagnostic("E0903", f"the pass {step.name} made a graph that is not valid:")
        raise InternalError((head, *error.diagnostics), error.source) from error
    return result


def verify_stage(graph: Graph, before: Graph | None = None) -> None:
    """Checks an operator graph or a layer graph by the rules of both; nodes that are in `before`, a graph that keeps the rules, aren't
    checked again."""
    if graph is before:
        return
    changed = None if before is None else changed_nodes(graph, before)
    verify_graph(graph, changed)
    verify_operators(graph, LAYERS, changed)
    verify_layers(graph, changed)

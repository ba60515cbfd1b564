"""PyTorch modules in: `torch.onnx.export`, which traces a module by `torch.export`, and from there as any ONNX file.

PyTorch and onnxscript are imported when a module is read, and nowhere else.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import logging
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError, listed, printable
from tpucc.interop.onnx.reading.files.names import BATCH

OPSET = 20
"""The newest operators of ONNX that all of PyTorch's exporters since 2.6 write."""
STATE = 3
"""The axes of states: layers, batch, units."""
LONGEST_CHAIN = 16
"""Errors that one was raised from."""
_UNKNOWN = re.compile(r"No ONNX function found for <OpOverload\(op='([\w.]+)'")
_BRANCH = re.compile(r"Could not guard on data-dependent|[Dd]ata-dependent branching|Dynamic control flow")
_NUMBER = re.compile(r"Could not extract specialized (integer|float) from data-dependent")
"""What PyTorch says of values that Python asks for: where it branches, and where it makes a number of them."""
LONGEST_LINE = 80
"""Characters of a module's line in a message."""
NEAR = 1e-4
"""How near two results of one row are, as shares of the largest value: sums of other batches may be taken in another order."""
NO_BATCH = "All sizes are those of the example, whose inputs have no size in common that a batch would be."
FIXED = "All sizes are those of the example: for other batches the module fails or computes something else, or PyTorch can't export it."
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class Arguments:
    """The tensors that `forward` is called with, by position and by keyword. `names` has each by the name of its argument, and that of
    `*xs` in a tuple, as PyTorch wants what it says of them."""

    positional: tuple[Any, ...]
    keywords: Mapping[str, Any]
    names: Mapping[str, Any]

    @property
    def tensors(self) -> dict[str, Any]:
        """All tensors; those of `*xs` are `xs_0`, `xs_1` and so on, those of `**more` have their own names."""
        found: dict[str, Any] = {}
        for name, value in self.names.items():
            if isinstance(value, tuple):
                found |= {f"{name}_{place}": tensor for place, tensor in enumerate(value)}
            else:
                found |= value if isinstance(value, dict) else {name: value}
        return found

    def each(self, say: Callable[[Any], Any]) -> dict[str, Any]:
        """What is said of each tensor, in the same order and form as `names`."""
        return {
            name: tuple(map(say, value))
            if isinstance(value, tuple)
            else {key: say(tensor) for key, tensor in value.items()}
            if isinstance(value, dict)
            else say(value)
            for name, value in self.names.items()
        }

    def changed(self, change: Callable[[Any], Any]) -> Arguments:
        """The arguments with other tensors."""
        keywords = {name: change(value) for name, value in self.keywords.items()}
        return Arguments(tuple(map(change, self.positional)), keywords, self.each(change))


@dataclass(frozen=True)
class Exported:
    """What is known of a file that was written: the batch of its example, if the file leaves that open, and what a reader is to know."""

    batch: int | None = None
    notes: tuple[str, ...] = ()


def export(module: Any, example: Any, path: Path) -> Exported:
    """Writes a module as an ONNX file.

    `example` is a tensor, or a tuple or a mapping of them by the names of `forward`'s arguments. Where all have the same first size, or
    states [layers, batch, units] have it second, and the module takes any other, that size is left open. Outputs have the keys of a dict
    that `forward` returns. Raises `UsageError` E1015 for what isn't the module's example, and for a module that PyTorch can't export.
    """
    torch = _torch()
    given = _arguments(torch, module, example)
    batch = _batch(list(given.tensors.values()))
    training = {part: part.training for part in module.modules()}
    module.eval()
    try:
        with _quiet(), torch.no_grad():
            result = _tried(module, given)
            _require_tensors(result)
            if not _tensors(torch, result):
                raise _refused("forward returns no tensor", "return the tensors that the network computes")
            outputs = _outputs(torch, module, given, result)
            followed = given if batch != 1 else _twice(torch, module, given, result)
            if batch is not None and followed is not None:
                size = torch.export.Dim(BATCH)
                open_sizes = given.each(lambda tensor: {_axis(tensor, batch): size})
                if _problem(torch, module, followed, path, outputs, open_sizes) is None:
                    return Exported(batch)
            if problem := _problem(torch, module, given, path, outputs, None):
                raise problem
    finally:
        for part, was_training in training.items():
            part.training = was_training  # parts may have been in modes of their own, as frozen batch norms are
    return Exported(notes=(NO_BATCH if batch is None else FIXED,))


def _torch() -> Any:
    missing = [name for name in ("torch", "onnx", "onnxscript") if importlib.util.find_spec(name) is None]
    if missing:
        are = "isn't" if len(missing) == 1 else "aren't"
        raise _refused(f"to read a PyTorch module takes {listed(missing)}, which {are} installed", "pip install 'tpucc[torch]'")
    return importlib.import_module("torch")


def plain_module(module: Any) -> Any:
    """The module itself, without what `torch.compile` or `DataParallel` put around it. Raises `UsageError` E1015 for what is none."""
    torch = _torch()
    while (inner := _inner(torch, module)) is not None:
        module = inner
    if isinstance(module, torch.jit.ScriptModule):
        made = printable(str(getattr(module, "original_name", "a module")))
        message = f"from_torch takes a module of Python, found one that torch.jit has made of {made}"
        raise _refused(message, "give the module that torch.jit.trace or torch.jit.script was given")
    if isinstance(module, type) and issubclass(module, torch.nn.Module):
        raise _refused(f"from_torch takes a module, found the class {printable(module.__name__)}", "make a module of it: call the class")
    if not isinstance(module, torch.nn.Module):
        help = "give the module whose method it is" if callable(module) else "give the model itself, not its weights"
        raise _refused(f"from_torch takes a torch.nn.Module, found {printable(type(module).__name__)}", help)
    return module


def _inner(torch: Any, module: Any) -> Any:
    """The module that `torch.compile` or `DataParallel` was given; None for another one. Twice compiled, a module is a function around
    its method `forward`."""
    if isinstance(module, torch.nn.DataParallel):
        return module.module
    if isinstance(module, torch.nn.Module):
        inner = getattr(module, "_orig_mod", None)
    else:
        made_of = inspect.unwrap(module) if inspect.isroutine(module) else None
        inner = getattr(made_of, "__self__", None) if getattr(made_of, "__name__", "") == "forward" else None
    return inner if isinstance(inner, torch.nn.Module) else None


def _arguments(torch: Any, module: Any, example: Any) -> Arguments:
    """The example's tensors as `forward` takes them. One that is given twice is two: PyTorch's exporter reads the last of equal inputs."""
    example = _apart(torch, example)
    taken = inspect.signature(module.forward).parameters
    kinds = {kind: [name for name, found in taken.items() if found.kind is kind] for kind in inspect._ParameterKind}
    places = [*kinds[inspect.Parameter.POSITIONAL_ONLY], *kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD]]
    rest, more = kinds[inspect.Parameter.VAR_POSITIONAL], kinds[inspect.Parameter.VAR_KEYWORD]
    if isinstance(example, Mapping):
        own = {name: value for name, value in example.items() if name in taken and name not in (*rest, *more)}
        others = {name: value for name, value in example.items() if name not in own}
        if others and not more:
            raise _refused(f"forward takes no argument {printable(str(next(iter(others))))}", f"its arguments are {listed(list(taken))}")
        found = Arguments((), dict(example), own | ({more[0]: others} if others else {}))
    else:
        values = tuple(example) if isinstance(example, Sequence) else (example,)
        if len(values) > len(places) and not rest:
            behind = "; a dict of tensors gives others by their names" if more else ""
            message = f"the example has {len(values)} values, and forward takes {len(places)}"
            raise _refused(message, f"its arguments are {listed(places)}{behind}")
        several = {rest[0]: values[len(places) :]} if len(values) > len(places) else {}
        found = Arguments(values, {}, dict(zip(places, values, strict=False)) | several)
    if wrong := next((name for name, value in found.tensors.items() if not isinstance(value, torch.Tensor)), None):
        what = type(found.tensors[wrong]).__name__
        raise _refused(f"the example of {printable(wrong)} is {what}, not a tensor", "give torch tensors of the model's shapes")
    return found


def _apart(torch: Any, example: Any) -> Any:
    """The example, in which no two values are the same tensor."""
    if isinstance(example, Mapping):
        return dict(zip(example, _apart(torch, tuple(example.values())), strict=True))
    if not isinstance(example, (list, tuple)):
        return example
    known = [id(value) for value in example]
    return tuple(
        value.clone() if isinstance(value, torch.Tensor) and id(value) in known[:place] else value for place, value in enumerate(example)
    )


def _batch(given: Sequence[Any]) -> int | None:
    """The size that all tensors have first, or, those of three axes, second: so have it states, [layers, batch, units]."""
    sizes = (size for size in given[0].shape[:2] if size) if given else ()
    return next((int(size) for size in sizes if all(_axis(value, size) is not None for value in given)), None)


def _axis(tensor: Any, batch: int) -> int | None:
    """The axis of a tensor that is the batch."""
    if tensor.ndim and tensor.shape[0] == batch:
        return 0
    return 1 if tensor.ndim == STATE and tensor.shape[1] == batch else None


def _twice(torch: Any, module: Any, given: Arguments, result: Any) -> Arguments | None:
    """The example with each row twice, as PyTorch takes no size of 1 for one that may change. None where the module has another result for
    a row beside another one, as where Python asks whether the batch is 1."""
    rows = given.changed(lambda tensor: torch.cat([tensor, tensor]))
    try:
        found = module(*rows.positional, **rows.keywords)
    except Exception:  # a module that takes one row may raise anything for two
        return None
    pairs = list(zip(_tensors(torch, result), _tensors(torch, found), strict=False))
    return rows if len(pairs) == len(_tensors(torch, found)) and all(_has_rows(torch, *pair) for pair in pairs) else None


def _has_rows(torch: Any, one: Any, two: Any) -> bool:
    """Whether a result for two equal rows is that for one of them, twice; or one that has no rows."""
    wanted = one if one.shape == two.shape else torch.cat([one, one]) if one.ndim else None
    if wanted is None or wanted.shape != two.shape or wanted.dtype != two.dtype:
        return False
    if not wanted.is_floating_point():
        return bool((wanted == two).all())
    finite = wanted[wanted.isfinite()].abs()
    return bool(torch.allclose(two, wanted, rtol=0, atol=NEAR * float(finite.max() if finite.numel() else 0), equal_nan=True))


def _leaves(result: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """What a module returns, also inside dicts and lists: each value with the keys and places that lead to it, joined by `_`."""
    if isinstance(result, (Mapping, list, tuple)):
        for key, value in result.items() if isinstance(result, Mapping) else enumerate(result):
            yield from _leaves(value, f"{name}_{key}" if name else str(key))
    else:
        yield name, result


def _tensors(torch: Any, result: Any) -> list[Any]:
    """The tensors that a module returns."""
    return [value for _, value in _leaves(result) if isinstance(value, torch.Tensor)]


def _tried(module: Any, given: Arguments) -> Any:
    """Runs the module once, so that what is wrong with its example is said in the module's own words; returns its result."""
    try:
        return module(*given.positional, **given.keywords)
    except Exception as error:
        raise _refused(
            f"the module itself fails on this example: {_first_line(error)}", "give an example on which module(…) works"
        ) from None


def _outputs(torch: Any, module: Any, given: Arguments, result: Any) -> list[str] | None:
    """The keys of a dict that a module returns, those of dicts and places of lists in it behind them; None for other results. An input, a
    weight or another result may have the name: then it is another."""
    if not isinstance(result, Mapping):
        return None
    taken = {*given.tensors, *module.state_dict()}
    names: list[str] = []
    for name in (name for name, value in _leaves(result) if isinstance(value, torch.Tensor)):
        own = f"{name}_out" if name in taken else name
        names.append(next(made for number in count(1) if (made := own if number == 1 else f"{own}_{number}") not in names))
    return names


def _require_tensors(result: Any) -> None:
    """Refuses a number or a text among what a module returns: ONNX has tensors only."""
    for name, value in _leaves(result):
        if isinstance(value, (bool, int, float, complex, str)):
            place = f"the result {printable(name)} of forward" if name else "the result of forward"
            raise _refused(f"{place} is {type(value).__name__}, not a tensor", "return tensors only; torch.tensor(…) makes one of a number")


def _problem(
    torch: Any, module: Any, given: Arguments, path: Path, outputs: list[str] | None, shapes: Mapping[str, Any] | None
) -> UsageError | None:
    """Writes the file; returns what went wrong, or nothing."""
    step = "torch.export.export"
    try:
        with redirect_stderr(io.StringIO()):  # where PyTorch writes the operators that it has followed before an error
            traced = torch.export.export(module, given.positional, kwargs=dict(given.keywords), dynamic_shapes=shapes)
            step = "torch.onnx.export"
            program = torch.onnx.export(
                traced,
                dynamo=True,
                opset_version=OPSET,
                verbose=False,
                input_names=list(given.tensors),
                output_names=outputs,
                dynamic_shapes=shapes,
            )
        _name_apart(program.model.graph)
        program.save(str(path), external_data=False)
    except Exception as error:  # whatever a module's own code and PyTorch raise
        chain = [error]
        while (cause := chain[-1].__cause__) is not None and len(chain) < LONGEST_CHAIN:
            chain.append(cause)  # type: ignore[arg-type]
        if missing := _UNKNOWN.search(str(chain[-1])):
            message = f"PyTorch has no ONNX form for the operator {printable(missing[1])}, which this module computes"
            return _refused(message, "write it with other operators, or end the module before it and compute it in your own program")
        if asks := _question(torch, chain):
            return asks
        return _refused(f"PyTorch can't export this module: {_first_line(chain[-1])}", f"{step}(module, args) alone says more")
    return None


def _name_apart(graph: Any) -> None:
    """Gives results another name that are an input as it is: PyTorch copies it under the input's own."""
    inputs = {value.name for value in graph.inputs}
    taken = inputs | {value.name for value in graph.outputs}
    for value in graph.outputs:
        if value.name in inputs and value not in graph.inputs:
            while value.name in taken:
                value.name = f"{value.name}_out"
            taken.add(value.name)


def _question(torch: Any, chain: Sequence[Exception]) -> UsageError | None:
    """The error of a module in which Python asks for a value of a tensor; None for another error."""
    said = "\n".join(map(str, chain))
    where = _line(torch, chain)
    if _BRANCH.search(said):
        message = f"the module branches on a value of a tensor, as with if or while{where}, and PyTorch exports no such branch"
        return _refused(message, "torch.where(condition, a, b) chooses between values that are both computed")
    if _NUMBER.search(said):
        message = f"the module makes a number of Python of a tensor's value{where}, and PyTorch exports none that depends on inputs"
        return _refused(message, "compute with tensors, without item(), int() and float(); sizes and numbers of steps are fixed")
    return None


def _line(torch: Any, chain: Sequence[Exception]) -> str:
    """The line of the module that an error comes from, in words: the last of its frames that is none of PyTorch, tpucc or Python."""
    ours = tuple(str(Path(file).parent) for file in (torch.__file__, __file__))
    frames = [frame for error in chain for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    own = [frame for frame in frames if frame.line and Path(frame.filename).parent != Path(inspect.__file__).parent]
    if not own:
        return ""
    last = own[-1]
    return printable(f" ({Path(last.filename).name}, line {last.lineno}: {(last.line or '')[:LONGEST_LINE]})")


def _first_line(error: Exception) -> str:
    return printable(_COLOUR.sub("", f"{type(error).__name__}: {str(error).strip()}".split("\n")[0]))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's progress, and its warnings about itself."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _refused(message: str, help: str) -> UsageError:
    return UsageError(Diagnostic("E1015", message, help=(help,)))

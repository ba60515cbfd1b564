"""PyTorch modules in: `torch.onnx.export`, which traces a module by `torch.export`, and from there as any ONNX file.

PyTorch and onnxscript are imported when a module is read, and nowhere else.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tpucc.diagnostics import Diagnostic, UsageError, listed, printable

OPSET = 20
"""The newest operators of ONNX that all of PyTorch's exporters since 2.6 write."""
BATCH = "batch"


def export(module: Any, example: Any, path: Path) -> int | None:
    """Writes a module as an ONNX file; returns the batch of its example, if the file leaves that open.

    `example` is a tensor, or a tuple or a mapping of them by the names of `forward`'s arguments. Where all have the same first size, and
    the module takes any other, that size is left open. Raises `UsageError` E1015 without PyTorch, for what isn't a module or its example,
    and for a module that PyTorch can't export.
    """
    torch = _torch()
    if not isinstance(module, torch.nn.Module):
        raise _refused(
            f"from_torch takes a torch.nn.Module, found {printable(type(module).__name__)}", "give the model itself, not its weights"
        )
    given = _by_argument(torch, module, example)
    batch = _batch(given)
    training = {part: part.training for part in module.modules()}
    module.eval()
    try:
        with _quiet(), torch.no_grad():
            _tried(module, given)
            if batch is not None and not _problem(torch, module, given, path, {name: {0: torch.export.Dim(BATCH)} for name in given}):
                return batch
            if problem := _problem(torch, module, given, path, None):
                raise _refused(f"PyTorch can't export this module: {problem}", "torch.export.export(module, args) alone says more")
    finally:
        for part, was_training in training.items():
            part.training = was_training  # parts may have been in modes of their own, as frozen batch norms are
    return None


def _torch() -> Any:
    try:
        for name in ("onnx", "onnxscript"):
            importlib.import_module(name)
        return importlib.import_module("torch")
    except ImportError as error:
        missing = printable(error.name or "torch")
        raise _refused(f"to read a PyTorch module takes {missing}, which isn't installed", "pip install 'tpucc[torch]'") from None


def _by_argument(torch: Any, module: Any, example: Any) -> dict[str, Any]:
    """The example's tensors by the names of `forward`'s arguments."""
    names = list(inspect.signature(module.forward).parameters)
    if isinstance(example, Mapping):
        given = dict(example)
        if unknown := [name for name in given if name not in names]:
            raise _refused(f"forward takes no argument {printable(str(unknown[0]))}", f"its arguments are {listed(names)}")
    else:
        values = list(example) if isinstance(example, Sequence) else [example]
        if len(values) > len(names):
            raise _refused(f"the example has {len(values)} values, and forward takes {len(names)}", f"its arguments are {listed(names)}")
        given = dict(zip(names, values, strict=False))
    if wrong := next((name for name, value in given.items() if not isinstance(value, torch.Tensor)), None):
        raise _refused(
            f"the example of {printable(wrong)} is {type(given[wrong]).__name__}, not a tensor", "give torch tensors of the model's shapes"
        )
    return given


def _batch(given: Mapping[str, Any]) -> int | None:
    """The first size that all tensors share. PyTorch takes no size of 1 for one that may change."""
    sizes = {value.shape[0] if value.ndim else None for value in given.values()}
    size = sizes.pop() if len(sizes) == 1 else None
    return int(size) if size is not None and size > 1 else None


def _tried(module: Any, given: Mapping[str, Any]) -> None:
    """Runs the module once, so that what is wrong with its example is said in the module's own words."""
    try:
        module(**given)
    except Exception as error:
        raise _refused(
            f"the module itself fails on this example: {_first_line(error)}", "give an example on which module(…) works"
        ) from None


def _problem(torch: Any, module: Any, given: Mapping[str, Any], path: Path, shapes: Mapping[str, Any] | None) -> str:
    """Writes the file; returns what went wrong, in PyTorch's words, or nothing."""
    try:
        traced = torch.export.export(module, (), kwargs=dict(given), dynamic_shapes=shapes)
        program = torch.onnx.export(traced, dynamo=True, opset_version=OPSET, verbose=False, input_names=list(given), dynamic_shapes=shapes)
        program.save(str(path), external_data=False)
    except Exception as error:  # whatever a module's own code and PyTorch raise
        return _first_line(error)
    return ""


def _first_line(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {str(error).strip()}".split("\n")[0])


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

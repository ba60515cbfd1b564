"""Files that aren't sources, by their first bytes or their names: the kind of each, and the command that takes it."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Foreign(NamedTuple):
    """A kind of file: `a listing`, and what helps."""

    what: str
    help: str


_SOURCE = "give the model's source, a text file that ends in .tpu"
_PAGE = Foreign("a page that tpucc or another program wrote", f"open it in a browser; {_SOURCE}")
_PICTURE = Foreign("a picture", _SOURCE)
_ARCHIVE = Foreign("an archive of arrays", "weights go to --weights, inputs to --input, examples of them to --calibrate")
_ARRAY = Foreign("a single array", "save arrays by name, with np.savez: --weights, --input and --calibrate take such archives")
_PROGRAM = Foreign("a compiled program", "tpucc run, profile and disasm take it, under a name that ends in .tpub")
_PYTHON = Foreign("Python", f"{_SOURCE}; a file with passes goes to --pass")
_NOTEBOOK = Foreign("a notebook", f"open it with Jupyter; {_SOURCE}")
_KERAS = Foreign(
    "a model of Keras",
    'model.export("model.onnx", format="onnx") in Keras writes a file that tpucc import reads; docs/pytorch.md shows how',
)
_TORCH = Foreign(
    "a model of PyTorch",
    "torch.onnx.export writes a file that tpucc import reads, and tpucc.from_torch takes the module itself; docs/pytorch.md shows how",
)
_ONNX = Foreign("a model in ONNX's format", "give it a name that ends in .onnx: every command takes it then")
_TFLITE = Foreign("a model of TensorFlow Lite", "tf2onnx --tflite writes a file that tpucc import reads")

BEGINNINGS: Mapping[bytes, Foreign] = {
    b"\x89TPUB": _PROGRAM,
    b"\x93NUMPY": _ARRAY,
    b"\x89HDF": _KERAS,
    b"\x89PNG": _PICTURE,
    b"\xff\xd8\xff": _PICTURE,
    b"GIF8": _PICTURE,
    b"%PDF": Foreign("a PDF document", _SOURCE),
    b"\x7fELF": Foreign("a machine's program", _SOURCE),
    b"\x1f\x8b": Foreign("a compressed file", f"unpack it first; {_SOURCE}"),
    b"<svg": _PICTURE,
    b"<?xml": Foreign("a picture or a document in XML", _SOURCE),
    b"<!doctype html": _PAGE,
    b"<html": _PAGE,
}
"""How files begin that tell what they are; letters in lower case."""
SUFFIXES: Mapping[str, Foreign] = {
    ".tpub": _PROGRAM,
    ".npz": _ARCHIVE,
    ".npy": _ARRAY,
    ".safetensors": Foreign("a file of weights", "weights go to --weights"),
    ".onnx": Foreign("a model in ONNX's format", "tpucc import MODEL.onnx -o MODEL.tpu writes its source; every command takes it, too"),
    ".keras": _KERAS,
    ".h5": _KERAS,
    ".tflite": _TFLITE,
    ".pt": _TORCH,
    ".pth": _TORCH,
    ".asm": Foreign("a listing", "tpucc asm makes a program of it, and tpucc compile goes on from it, --like the model"),
    ".graph": Foreign("a graph in text form", "tpucc opt runs passes on it, and tpucc compile goes on from it"),
    ".tile": Foreign("a tile program in text form", "tpucc compile goes on from it, --like the model that it was printed from"),
    ".dot": Foreign("a diagram for Graphviz", _SOURCE),
    ".svg": _PICTURE,
    ".png": _PICTURE,
    ".html": _PAGE,
    ".htm": _PAGE,
    ".py": _PYTHON,
    ".ipynb": _NOTEBOOK,
    ".json": Foreign("a file of JSON", _SOURCE),
    ".toml": Foreign("a file of settings", f"a machine goes to --target; {_SOURCE}"),
    ".csv": Foreign("a table", f"save arrays by name with np.savez for --input; {_SOURCE}"),
    ".zip": Foreign("an archive", f"unpack it first; {_SOURCE}"),
}
"""The kinds of files by the ends of their names; letters in lower case."""
_LONGEST = max(map(len, BEGINNINGS))
_VERSIONS = range(3, 32)
"""Of ONNX's format, with which a file begins, behind the number of that field."""
_LOOKED_AT = 4096
"""Bytes that tell whether a file is a text."""


def is_text(data: bytes) -> bool:
    """Whether a file that begins with `data` may be a source, by its characters."""
    try:
        text = getincrementaldecoder("utf-8")().decode(data[:_LOOKED_AT])
    except UnicodeDecodeError:
        return False
    return bool(text.strip()) and all(letter >= " " or letter.isspace() for letter in text)


def foreign(path: Path, data: bytes) -> Foreign | None:
    """The kind of a file that begins with `data`, if it is a known kind other than a source."""
    start = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:_LONGEST]
    known = next((kind for beginning, kind in BEGINNINGS.items() if start.lower().startswith(beginning.lower())), None)
    known = known or SUFFIXES.get(path.suffix.lower())
    if known is None and data[:1] == b"\x08" and data[1:2] and data[1] in _VERSIONS:
        return _ONNX
    if known is None and data.startswith(b"PK\x03\x04"):
        return _ARCHIVE
    return known

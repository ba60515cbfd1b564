"""Programs, archives and targets that lie: well-formed on the outside, with repaired checksums, and wrong within."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import tpucc
from tests.support.campaign import Case
from tpucc.isa import container
from tpucc.isa.container import SECTIONS, encode
from tpucc.ops import OPS

HEAD = "weights random(seed=0)\n"
SOURCES = (
    HEAD
    + """
model host(x: f32[4, 6] in [-1.0, 1.0], t: i32[4, 3]):
    weight e: f32[10, 4]
    weight w: f32[6, 12]
    weight v: f32[12, 12]
    h = relu(x @ w + 0.5)
    s = softmax(h)
    y = tanh(s @ v)
    g = reshape(embedding(t, e), [4, 12])
    return y, argmax(y * g, axis=1), s
""",
    HEAD
    + """
model image(x: f32[2, 8, 8, 3]):
    weight k: f32[3, 3, 3, 4]
    weight w: f32[64, 5]
    return softmax(reshape(max_pool(relu(conv2d(x, k, padding="same")), 2), [2, 64]) @ w)
""",
    HEAD + "activations i16\n\nmodel wide(x: f32[3, 5], y: f32[]):\n    weight w: f32[5, 7]\n    return relu6(x @ w) * tanh(y), x[0]\n",
    HEAD + "\nmodel alone(x: f32[2, 3]):\n    return softmax(x[0:1]), x * 2.0\n",
)
NUMBERS = (0, -1, 1, 2, 3, 127, 128, 255, 256, 257, 65536, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**64, 10**30, -(2**31))
FLOATS = (0.0, -1.0, 1e-300, 1e300, 1e-45, 3.5e38, 1e-30, 1e30, 0.1, 1e16)
WORDS = (
    "",
    "x",
    "y",
    "\u202e",
    "../../x",
    "a\nb",
    "a" * 5000,
    "<script>",
    "constant",
    "input",
    "output",
    "scratch",
    "nothing",
    "\0",
    "softmax",
)
OPERATORS = tuple(OPS)


@cache
def _sections() -> tuple[tuple[bytes, ...], ...]:
    """The sections of some programs."""
    options: tuple[dict[str, Any], ...] = ({}, {"cores": 2}, {}, {})
    programs = [tpucc.compile_source(text, target="tiny", **asked).program.value for text, asked in zip(SOURCES, options, strict=True)]
    return tuple(tuple(map(bytes, container._section_bytes(program))) for program in programs)


def assembled(sections: list[bytes]) -> bytes:
    """A `.tpub` of these sections, with the right lengths and checksums."""
    table, body, end = b"", b"", container._TABLE_END
    for name, data in zip(SECTIONS, sections, strict=True):
        offset = container._aligned(end)
        table += container._ENTRY.pack(name.encode(), offset, len(data), zlib.crc32(data), 0)
        body += bytes(offset - end) + data
        end = offset + len(data)
    return container._header(end, table) + table + body


def good_program() -> bytes:
    return encode(tpucc.compile_source(SOURCES[0], target="tiny").program.value)


def broken_program(choose: random.Random) -> tuple[str, bytes]:
    """A program with one to three lies in its sections, and which sections they are in."""
    sections, changed = list(choose.choice(_sections())), []
    for _ in range(choose.choice((1, 1, 1, 2, 3))):
        name = choose.choice(
            ("metadata",) * 6 + ("prologue", "epilogue", "steps") * 5 + ("resident", "code", "layer_of", "blocks", "constant")
        )
        index = SECTIONS.index(name)
        changed.append(name)
        if name in ("metadata", "resident", "steps"):
            sections[index] = _json(sections[index], choose)
        elif name in ("prologue", "epilogue"):
            sections[index] = _graph(sections[index].decode(), choose).encode()
        else:
            sections[index] = _bytes(sections[index], choose)
    return " and ".join(changed), assembled(sections)


def _json(data: bytes, choose: random.Random) -> bytes:
    """JSON with one value that is another: a leaf, or a list that is longer, shorter or in another order."""
    value = json.loads(data)
    places = list(_places(value))
    if places:
        holder, key = choose.choice(places)
        holder[key] = _other(holder[key], choose)
    try:
        return msgspec.json.encode(value)  # in the form that the container wants
    except (OverflowError, UnicodeEncodeError):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _places(value: Any) -> Any:
    """Everything that stands inside a value: the list or dictionary that holds it, and where."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield value, key
        yield from _places(part)


def _other(value: Any, choose: random.Random) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return choose.choice((*NUMBERS, value + 1, value - 1, value * 2))
        case float():
            return choose.choice((*FLOATS, value * 2, value * 1e10))
        case str() if value.startswith("graph"):
            return _graph(value, choose)
        case str():
            return choose.choice((*WORDS, value + "x"))
        case list() if value:
            index = choose.randrange(len(value))
            cut = value[:index] + value[index + 1 :]
            return choose.choice((cut, [*value, value[index]], [], value[::-1], [*value[:index], value[-1], *value[index + 1 :]]))
    return choose.choice((None, 0, "", [], {}))


def _graph(text: str, choose: random.Random) -> str:
    """The text of a graph with a line too many, a line too few, or one word that is another."""
    lines = text.split("\n")
    if not text.strip() or choose.random() < 0.1:
        index = choose.randrange(len(lines))
        return "\n".join(choose.choice((lines[:index] + lines[index + 1 :], [*lines[: index + 1], *lines[index:]], lines[::-1], [])))
    tokens = [match for match in re.finditer(r'"[^"]*"|[A-Za-z_][A-Za-z0-9_.]*|-?\d+(\.\d+)?(e-?\d+)?', text) if match[0] != "graph"]
    if choose.random() < 0.5:
        tokens = [match for match in tokens if match[0][-1].isdigit() and not match[0][0].isalpha()] or tokens
    found = choose.choice(tokens)
    names = [match[0] for match in tokens]
    new = (
        str(choose.choice((*NUMBERS, *FLOATS)))
        if found[0][0] in "-0123456789"
        else choose.choice((*OPERATORS, *names, *names, "f32", "i8", "i16", "i32", '"z"', "host"))
    )
    if choose.random() < 0.3 and found[0] != new:
        return re.sub(rf"(?<![A-Za-z0-9_.]){re.escape(found[0])}(?![A-Za-z0-9_.])", lambda _: new, text)
    return text[: found.start()] + new + text[found.end() :]


def _bytes(data: bytes, choose: random.Random) -> bytes:
    """Bytes of which one to three differ, or which end sooner or later: by a number, a record, or any count."""
    if choose.random() < 0.2:
        size = choose.choice((1, 4, 8, 32, 64, len(data)))
        return choose.choice((data[:-size], data + data[:size], data + bytes(size)))
    changed = bytearray(data)
    for _ in range(choose.randint(1, 3) if data else 0):
        changed[choose.randrange(len(changed))] = choose.choice((0, 1, 127, 128, 255, choose.randrange(256)))
    return bytes(changed)


def program_case(choose: random.Random) -> Case:
    changed, data = broken_program(choose)
    Path("p.tpub").write_bytes(data)
    others = (
        ["profile", "p.tpub"],
        ["disasm", "p.tpub"],
        ["profile", "p.tpub", "--json"],
        ["run", "p.tpub", "--quantized-output", "q.npz"],
    )
    return changed, [["run", "p.tpub", "--check"], choose.choice(others)]


TYPES = ("<f8", ">f4", "|S5", "<U9", "<M8[s]", "<c8", "|V0", "<f2", "zz")


def _npy(choose: random.Random) -> bytes:
    """An array whose header or data may lie."""
    stream = io.BytesIO()
    array = choose.choice(
        (np.zeros((4, 6), np.float32), np.zeros((4, 3), np.int32), np.ones((6, 12), np.float32), np.zeros(0), np.float32(1))
    )
    np.lib.format.write_array(stream, np.asarray(array))
    data = stream.getvalue()
    header = choose.choice(
        (
            "(\n",
            "{" * 100,
            "[" * 5000,
            "{'descr': '<f4', 'fortran_order': False, 'shape': (NUMBER,), }".replace("NUMBER", str(choose.choice(NUMBERS))),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (NUMBER, 6), }".replace("NUMBER", str(choose.choice(NUMBERS))),
            "{'descr': '|O', 'fortran_order': False, 'shape': (4, 6), }",
            "{'descr': 'TYPE', 'fortran_order': True, 'shape': (4, 6), }".replace("TYPE", choose.choice(TYPES)),
            "{'descr': [('a', '<f4'), ('b', '<i8')], 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f4', 'shape': (4, 6), }",
            "{'descr': '<f4', 'fortran_order': 3, 'shape': 'x', }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4, -6), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (" + "1, " * 70 + "), }",
            "__import__('os').abort()",
            "\u202e" * 20,
        )
    ).encode("utf-8")
    kind = choose.randrange(5)
    if kind == 0:
        return data[: choose.randrange(len(data) + 1)]
    if kind == 1:
        return _bytes(data, choose)
    length = choose.choice((len(header), len(header), len(header), 0, 65535, len(header) + 7))
    version = choose.choice((b"\x01\x00", b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"))
    packed = struct.pack("<H", length) if version == b"\x01\x00" else struct.pack("<I", choose.choice((length, 2**30, 2**32 - 1)))
    if kind == 2:
        return b"\x93NUMPY" + version + packed + header + data[128:]
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data[128:] * choose.choice((0, 1, 2))


def broken_archive(choose: random.Random) -> tuple[str, bytes]:
    """An archive in which a member, its name, its sizes or the directory lie; or a file that is no archive at all."""
    stream = io.BytesIO()
    kind = choose.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    names = ("x.npy", "t.npy", "w.npy", "../x.npy", "/etc/passwd", "x", ".npy", "a\u202eb.npy", "x" * 300 + ".npy", "CON.npy", "x\n.npy")
    with zipfile.ZipFile(stream, "w", kind) as file:
        for name in dict.fromkeys(choose.choice(names) for _ in range(choose.randint(1, 4))):
            bomb = choose.random() < 0.1
            file.writestr(name, _npy(choose) + bytes(choose.choice((10**6, 3 * 10**7)) if bomb else 0))
    data = bytearray(stream.getvalue())
    what = choose.choice(("members", "members", "members", "directory", "header", "cut", "noise", "doubled"))
    if what in ("directory", "header"):
        sign = b"PK\x01\x02" if what == "directory" else choose.choice((b"PK\x03\x04", b"PK\x05\x06"))
        at = data.find(sign)
        for _ in range(choose.randint(1, 3)):
            place = at + choose.randrange(4, 40)
            if 0 <= place < len(data):
                data[place] = choose.choice((0, 1, 255, choose.randrange(256)))
    elif what == "cut":
        del data[choose.randrange(len(data)) :]
    elif what == "noise":
        data = bytearray(_bytes(bytes(data), choose))
    elif what == "doubled":
        data = data * 2
    return what, bytes(data)


def archive_case(choose: random.Random) -> Case:
    changed, data = broken_archive(choose)
    Path("a.npz").write_bytes(data)
    Path("m.tpu").write_text(SOURCES[0].replace("weights random(seed=0)", 'weights "a.npz"'))
    Path("r.tpu").write_text(SOURCES[0])
    if not Path("good.tpub").exists():
        Path("good.tpub").write_bytes(good_program())
    weights = ["check", "m.tpu", "--target", "tiny"]
    calibrate = ["compile", "r.tpu", "--target", "tiny", "--calibrate", "a.npz", "-o", "built"]
    return changed, [["run", "good.tpub", "--input", "a.npz"], choose.choice((weights, calibrate))]


def broken_target(choose: random.Random) -> tuple[str, str]:
    """A target's file with one to three numbers that no machine has, or lines that are no TOML."""
    text = (Path(tpucc.__file__).parent / "targets" / f"{choose.choice(('tiny', 'tpu_v1', 'tpu_edge'))}.toml").read_text()
    lines, changed = text.split("\n"), []
    for _ in range(choose.choice((1, 1, 2, 3))):
        index = choose.choice([i for i, line in enumerate(lines) if "=" in line])
        field = lines[index].split("=")[0].strip()
        wrong = choose.choice(TARGET_VALUES)
        changed.append(f"{field} = {wrong[:40]}")
        lines[index] = f"{field} = {wrong}"
    if choose.random() < 0.1:
        lines.insert(
            choose.randrange(len(lines)), choose.choice(("[", "x = ", "mxu = 4", "a.b.c = 1", "[[x]]", "\u202e = 1", "y = " + "[" * 3000))
        )
    return ", ".join(changed), "\n".join(lines)


TARGET_VALUES = (
    *map(str, NUMBERS),
    *(repr(value) for value in FLOATS),
    *("1e300", "1e-300", "-1e300", "inf", "nan", "-0.0", "5e-324", "1.7e308", "1e18", "1e-18", "1e9", "0x7fffffff", "1_000"),
    *(
        "9" * 10_000,
        "1" + "0" * 400,
        '"x"',
        '""',
        "true",
        "[1]",
        "{}",
        "1979-05-27",
        '"\\u202e"',
        '"' + "n" * 5000 + '"',
        "'int8'",
        "'bfloat16'",
    ),
)


def target_case(choose: random.Random) -> Case:
    changed, text = broken_target(choose)
    Path("t.toml").write_text(text)
    Path("m.tpu").write_text(choose.choice(SOURCES[:3]))
    commands = (
        ["profile", "m.tpu"],
        ["compile", "m.tpu", "-o", "built"],
        ["run", "m.tpu", "--check"],
        ["report", "m.tpu", "-o", "p.html"],
        ["targets", "t.toml"],
    )
    chosen = choose.choice(commands)
    sets = ["--set", f"{choose.choice(list(NUMBER_FIELDS))}={choose.choice(TARGET_VALUES)}"]
    return changed, [
        [*chosen, *([] if chosen[0] == "targets" else ["--target", "t.toml"])],
        ["profile", "m.tpu", "--target", "tiny", *sets],
    ]


NUMBER_FIELDS = tpucc.target.number_fields()
CASES: dict[str, Callable[[random.Random], Case]] = {"program": program_case, "archive": archive_case, "target": target_case}

"""Binaries and listings: both hold the whole program, and nothing malformed gets through."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each, one_of
from tests.support.dense import DenseNetwork
from tests.support.seeds import at_length
from tpucc.cli.main import main
from tpucc.isa import container
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.program import Division, Program
from tpucc.isa.verify import verify

SOURCE = """
weights random(seed=0)
model m(x: f32[3, 5] in [0.0, 1.0], y: f32[3, 9]):
    weight w: f32[5, 9]
    return softmax(tanh(x @ w) * y)
"""


@cache
def program(target: str = "tiny") -> Program:
    found: Program = tpucc.compile_source(SOURCE, target=target).program.value
    return found


@pytest.mark.parametrize("target", ["tpu_v1", "tiny"])
def test_both_forms_come_back_equal(target: str) -> None:
    p = program(target)
    assert decode(encode(p), "p") == p
    assert encode(assemble(disassemble(p), "p.asm")) == encode(p)


@pytest.mark.long
@each(range(12))
def test_random_networks_come_back_equal(seed: int) -> None:
    p = tpucc.compile_source(DenseNetwork(seed).source()).program.value
    assert encode(assemble(disassemble(p), "p.asm")) == encode(decode(encode(p), "p")) == encode(p)


@pytest.mark.parametrize(
    ("division", "line"),
    [
        (Division(3, 1), ".division parts=3 items=1 order=in-turn"),
        (Division(2, 2, "alternating", "matmul"), ".division parts=2 items=2 order=alternating until=matmul"),
    ],
)
def test_a_division_of_the_batch_comes_back_equal(division: Division, line: str) -> None:
    p = replace(program(), division=division)
    assert line in disassemble(p).split("\n")
    assert assemble(disassemble(p), "p.asm").division == decode(encode(p), "p").division == division


def survives(data: bytes) -> bool:
    """Whether bytes are refused as they must be, or are a program that the verifier can judge."""
    try:
        verify(decode(data, "p.tpub"))
    except (tpucc.ProgramError, tpucc.LimitError) as error:
        return error.exit_status in (3, 4)
    return True


def damaged(data: bytes, choose: random.Random) -> bytes:
    at, kind = choose.randrange(len(data)), choose.randrange(5)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes(choose.randrange(256) for _ in range(4)) + data[at:]
    if kind == 2:
        return data[:at] + data[at + choose.randint(1, 64) :]
    changed = bytearray(data)
    for _ in range(choose.randint(1, 3)):
        changed[choose.randrange(len(changed)) if kind == 3 else choose.randrange(min(200, len(changed)))] ^= 1 << choose.randrange(8)
    return bytes(changed)


@each([range(first, first + 500) for first in range(0, 2000, 500)])
def test_damaged_binaries_are_refused(seeds: range) -> None:
    check_damaged(seeds)


@at_length(500_000, 25_000)
def test_damaged_binaries_are_refused_at_length(seeds: range) -> None:
    check_damaged(seeds)


def check_damaged(seeds: range) -> None:
    data = encode(program())
    for seed in seeds:
        broken = damaged(data, random.Random(seed))
        assert survives(broken), f"seed {seed}"
        if broken != data:
            with pytest.raises(tpucc.ProgramError):
                decode(broken, "p.tpub")


def test_a_listing_is_made_only_of_parts_that_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = replace(program(), layer_of=program().layer_of[:-1])
    (tmp_path / "p.tpub").write_bytes(encode(damaged))
    assert main(["disasm", str(tmp_path / "p.tpub")]) == 3
    assert "V0101: layer_of has the shape" in capsys.readouterr().err


def test_no_byte_of_a_binary_is_free() -> None:
    """Not even of those between two sections: a program has one encoding."""
    data = encode(program())
    for at in range(len(data)):
        broken = bytearray(data)
        broken[at] ^= 0x10
        with pytest.raises(tpucc.ProgramError):
            decode(bytes(broken), "p.tpub")


def test_a_label_reaches_to_the_last_row_of_its_buffer() -> None:
    text = disassemble(program())
    (written,) = {line for line in text.splitlines() if "ub=tanh.0 inner" in line}
    assert verify(assemble(text.replace(written, written.replace("tanh.0", "tanh.0+2")), "p.asm"))  # two rows are another's
    with pytest.raises(tpucc.ProgramError, match=r"E0713: tanh\.0 has 3 rows"):
        assemble(text.replace(written, written.replace("tanh.0", "tanh.0+3")), "p.asm")


@pytest.mark.long
@pytest.mark.parametrize("first", one_of(3, (0, 100, 200)))
def test_damaged_listings_get_a_place(first: int) -> None:
    check_listings(range(first, first + 100))


@at_length(10_000, 500)
def test_damaged_listings_get_a_place_at_length(seeds: range) -> None:
    check_listings(seeds)


def check_listings(seeds: range) -> None:
    lines, refused = disassemble(program()).split("\n"), 0
    for seed in seeds:
        choose = random.Random(seed)
        changed, at = list(lines), choose.randrange(len(lines))
        changed[at] = changed[at].replace(choose.choice("abcdefgh=.+0123"), choose.choice(["", "?", "9", "x", " "]), 1)
        try:
            verify(assemble("\n".join(changed), "p.asm"))
        except (tpucc.ProgramError, tpucc.LimitError) as error:
            assert error.diagnostics  # noqa: PT017
            assert all(d.labels for d in error.diagnostics)  # noqa: PT017
            refused += 1
    assert refused > 0.2 * len(seeds)


@each(
    [
        ("matrix_multipy ub=0 acc=0 rows=1", "did you mean matrix_multiply"),
        ("matrix_multiply ub=0 acc=0", "needs rows: how many rows, one after the other"),
        ("vector function=table a=0 b=0 ub=0 inner=1", "function=table has no b"),
        ("vector function=table a=0 b_stride=2 ub=0 inner=1", "vector has b_stride with another function"),
        ("matrix_multiply ub=0 acc=0 row=1", "did you mean rows"),
        ("matrix_multiply ub=0 acc=0 rows=1 rows=2", "given twice"),
        ("matrix_multiply ub=zero acc=0 rows=1", "nothing in the unified buffer is named zero"),
        ("matrix_multiply ub=0 acc=0 rows=1, swich", "swich"),
        ("synchronize engine=martix wait=host", "no engine is named martix"),
        ("synchronize engine=host wait=matrix+activation", "several engines are joined by |: matrix|activation"),
        ("read_weights tile=-1", "tile"),
        (".division parts=2 items=2 order=both", "both isn't an order of parts"),
    ]
)
def test_wrong_lines_are_explained(line: str, words: str) -> None:
    with pytest.raises(tpucc.ProgramError) as caught:
        assemble(f".target tiny\n{line}\nhalt\n", "p.asm")
    assert words in str(caught.value)
    assert "p.asm:2:" in str(caught.value)


DESCRIPTIONS = [
    ("target", "mxu", "4", "target.mxu must be an integer, not a string"),
    ("target", "mxu", -4, "target: mxu must be an integer from 1 to 1,024, and is -4"),
    ("target", "mxo", 4, "target has no field mxo"),
    ("target", "data_type", "float8", "target.data_type can't be float8"),
    ("target", "clock_hz", True, "target.clock_hz must be a number, not true or false"),
    ("target", "clock_hz", 0.5, "target: clock_hz must be a number from 1 to 10^18, and is 0.5"),
    ("inputs", "shape", [4, "6"], "inputs[0].shape[1] must be an integer, not a string"),
    ("inputs", "scale", None, "inputs[0].scale must be a number, not nothing"),
    ("outputs", "wide", 1, "outputs[0].wide must be true or false, not an integer"),
    ("layers", "weights", [6], "layers[0].weights must be a list of length 2"),
]


@each(DESCRIPTIONS)
def test_a_description_that_says_something_impossible(
    part: str, field: str, value: object, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file's checksums are right, so that it is read as far as this field. The words are ours, not the library's."""
    written = container._section_bytes

    def changed(given: Program) -> list[bytes]:
        metadata, *others = written(given)
        described = json.loads(metadata)
        (described[part] if part == "target" else described[part][0])[field] = value
        return [json.dumps(described).encode(), *others]

    monkeypatch.setattr(container, "_section_bytes", changed)
    with pytest.raises(tpucc.ProgramError) as caught:
        decode(encode(program()), "p.tpub")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("E0706", f"the section metadata is malformed: {words}")


@pytest.mark.parametrize("scale", [float("inf"), float("nan")])
def test_a_scale_without_a_binary_form(scale: float) -> None:
    good = program()
    port = replace(good.inputs[0], scale=scale)
    with pytest.raises(tpucc.ProgramError, match=r"E0707: .* inputs\[0\]\.scale must be a number, not infinity, NaN or None$"):
        encode(replace(good, inputs=(port,)))

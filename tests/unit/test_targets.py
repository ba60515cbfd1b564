"""Machines: the peaks of all relatives by arithmetic, overrides of single numbers, and what no program can be made for."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tpucc.cli.main import main
from tpucc.diagnostics import ProgramError, UsageError
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.target import ASSUMED, NEEDED, RANGES, load_target, number_fields, parse_target, target_names, with_overrides

SOURCE = """
weights random(seed=1)
model small(x: f32[8, 300] in [-1.0, 1.0]):
    weight w: f32[300, 300]
    return relu(x @ w)
"""
FOLDER = Path(tpucc.__file__).parent / "targets"


@each(
    [
        ("tpu_v1", 91.75, "TOPS"),
        ("tpu_v1_prime", 91.75, "TOPS"),
        ("tpu_edge", 3.93, "TOPS"),
        ("tpu_v2", 45.88, "TFLOPS"),
        ("tpu_v3", 123.21, "TFLOPS"),
        ("tpu_v4i", 137.63, "TFLOPS"),
    ]
)
def test_the_peaks_of_the_relatives(name: str, peak: float, unit: str) -> None:
    target = load_target(name)
    assert round(target.chip_peak_ops / 1e12, 2) == peak
    assert target.peak_unit == unit


def test_tpu_prime_differs_from_tpu_v1_in_its_weight_memory_only() -> None:
    v1, prime = (tomllib.loads((FOLDER / f"{name}.toml").read_text()) for name in ("tpu_v1", "tpu_v1_prime"))
    assert {key for key in v1 if v1[key] != prime.get(key, v1[key])} == {"name", "description", "weight_bandwidth"}
    target = load_target("tpu_v1_prime")
    assert target.weight_bandwidth > 5 * load_target("tpu_v1").weight_bandwidth
    assert round(target.ridge_macs_per_byte) == 250


@each(target_names())
def test_every_number_has_its_source(name: str) -> None:
    """Behind each number the file says that it is published and where, inferred and from what, or assumed and why."""
    text = (FOLDER / f"{name}.toml").read_text("utf-8")
    said = set(re.findall(r"^(\w+) = \S+ +# (?:published|inferred|assumed): .{3,}$", text, re.MULTILINE))
    needed = set() if load_target(name).obstacle else {*NEEDED, *ASSUMED}
    assert said == {key for key in tomllib.loads(text) if key in number_fields()} | needed


def test_a_tile_of_bfloat16_takes_two_bytes_a_weight() -> None:
    assert load_target("tpu_v2").tile_bytes == 2 * 128 * 128
    assert load_target("tpu_v1").tile_bytes == 256 * 256


@each(["tpu_v2", "tpu_v3", "tpu_v4i"])
def test_no_program_is_made_for_bfloat16(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=f"{name} multiplies bfloat16 and sums in float32; this compiler makes 8-bit programs") as error:
        tpucc.compile_source(SOURCE, target=name)
    assert error.value.diagnostics[0].code == "E0530"
    (tmp_path / "small.tpu").write_text(SOURCE)
    assert main(["profile", str(tmp_path / "small.tpu"), "--target", name]) == 2
    assert "--target tpu_v1" in capsys.readouterr().err


def test_no_program_is_made_for_several_matrix_units() -> None:
    with pytest.raises(UsageError, match="has 4 matrix units a core"):
        tpucc.compile_source(SOURCE, overrides={"matrix_units": 4})


def test_no_listing_and_no_binary_is_for_a_machine_without_programs() -> None:
    with pytest.raises(ProgramError, match="no program can be for tpu_v4i"):
        assemble(".target tpu_v4i\nhalt\n", "p.asm")
    program = tpucc.compile_source(SOURCE, target="tpu_v1").program.value
    target = with_overrides(program.target, {"matrix_units": 2})
    with pytest.raises(ProgramError, match="2 matrix units") as error:
        decode(encode(replace(program, target=target)), "p.tpub")
    assert error.value.diagnostics[0].code == "E0706"


@each(["accumulator_rows", "unified_buffer_rows", "weight_fifo_tiles", "host_bandwidth"])
def test_a_machine_for_programs_needs_all_its_parts(field: str) -> None:
    lines = (FOLDER / "tpu_v1.toml").read_text().splitlines()
    with pytest.raises(ProgramError, match=f"mine.toml is not a target: it doesn't say {field}$"):
        parse_target("\n".join(line for line in lines if not line.startswith(field)), "mine.toml")


def test_unknown_data_types_are_refused() -> None:
    with pytest.raises(ProgramError, match="data_type"):
        parse_target((FOLDER / "tpu_v1.toml").read_text() + '\ndata_type = "float8"\n', "mine.toml")


def test_an_override_changes_one_number_and_the_name() -> None:
    base, found = load_target("tpu_v1"), load_target("tpu_v1", {"weight_bandwidth": "136e9"})
    assert found.weight_bandwidth == 136e9
    assert found.name == "tpu_v1 (weight_bandwidth=136e9)"
    same = {f: getattr(base, f) for f in base.__struct_fields__ if f not in ("name", "weight_bandwidth")}
    assert {f: getattr(found, f) for f in same} == same


@each(
    [
        ("weight_bandwidth", ("136e9", "136000000000", 136e9, 136 * 10**9, np.float64(136e9)), "weight_bandwidth=136e9"),
        ("mxu", ("512", " 512", "5.12e2", 512, 512.0, np.int64(512)), "mxu=512"),
        ("clock_hz", ("2.8e9", 2.8e9), "clock_hz=2.8e9"),
        ("host_step_seconds", ("0", 0), "host_step_seconds=0"),
        ("host_step_seconds", ("20e-6", 2e-5), "host_step_seconds=0.00002"),
        ("weight_bandwidth", (1e11 / 3,), "weight_bandwidth=33333333333.333332"),
    ]
)
def test_values_may_be_written_in_many_ways(field: str, values: tuple[object, ...], name: str) -> None:
    targets = {load_target("tpu_v1", {field: value}) for value in values}
    assert [target.name for target in targets] == [f"tpu_v1 ({name})"]
    assert isinstance(getattr(targets.pop(), field), type(getattr(load_target("tpu_v1"), field)))


def test_overrides_that_change_nothing_leave_the_target_as_it_is() -> None:
    assert load_target("tpu_v1", {"clock_hz": "700e6", "mxu": 256}) == load_target("tpu_v1")


@each(
    [
        ("weight_bandwith", "136e9", "did you mean weight_bandwidth"),
        ("name", "mine", "it has mxu"),
        ("data_type", "int8", "it has mxu"),
        ("mxu", "wide", "mxu of a target is an integer from 1 to 1,024, not wide"),
        ("mxu", "3.5", "mxu of a target is an integer from 1 to 1,024, not 3.5"),
        ("mxu", True, "not True"),
        ("mxu", "", "not an empty text"),
        ("mxu", "nan", "not nan"),
        ("mxu", "1e400", "not 1e400"),
        ("mxu", "2048", "mxu must be an integer from 1 to 1,024, and is 2048"),
        ("mxu", "-4", "from 1 to 1,024, and is -4"),
        ("clock_hz", "", "clock_hz of a target is a number"),
        ("clock_hz", "0", "a number from 1 to 10.18, and is "),
        ("clock_hz", "inf", "a number from 1 to 10.18, and is "),
        ("clock_hz", [700e6], "is a number"),
        ("accumulator_rows", "1", "from 2 to 4,194,304, and is 1"),
        ("unified_buffer_rows", "5e6", "from 2 to 4,194,304, and is 5000000"),
        ("host_step_seconds", "-1", "from 0 to 1,000,000"),
        ("host_latency_seconds", "-1e-6", "from 0 to 1,000,000"),
        ("host_latency_seconds", "inf", "from 0 to"),
    ]
)
def test_wrong_overrides(field: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        load_target("tpu_v1", {field: value})
    assert error.value.diagnostics[0].code == "E0531"


def test_overrides_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.tpu").write_text(SOURCE)
    sets = ["--set", "weight_bandwidth=136e9", "--set", "mxu=128"]
    name = "tpu_v1 (mxu=128, weight_bandwidth=136e9)"
    assert main(["compile", "small.tpu", *sets]) == 0
    assert name in capsys.readouterr().out
    stats = json.loads(Path("build/small/stats.json").read_text())
    assert stats["target"] == name
    assert stats["tiles"] == 9
    assert name in Path("build/small/report.html").read_text()
    exe = tpucc.compile("small.tpu", overrides={"weight_bandwidth": 136e9, "mxu": 128})
    assert exe.stats | {"what_if": stats["what_if"]} == stats
    assert tpucc.compile("small.tpu", target=load_target("tpu_v1", {"weight_bandwidth": 136e9}), overrides={"mxu": 128}).stats["tiles"] == 9
    assert main(["profile", "build/small/small.tpub"]) == 0
    assert name in capsys.readouterr().out
    assert main(["profile", "build/small/small.tpub", *sets]) == 2


def test_passes_run_for_an_overridden_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.graph"
    path.write_text(str(tpucc.compile_source(SOURCE).graph))
    assert main(["opt", str(path), "-p", "place", "--set", "mxu=64"]) == 0
    assert main(["opt", str(path), "-p", "place", "--set", "mux=64"]) == 2
    assert "did you mean mxu" in capsys.readouterr().err


def test_a_listing_keeps_the_overridden_machine() -> None:
    program = tpucc.compile_source(SOURCE, overrides={"mxu": 64, "cores": 2}).program.value
    assert assemble(disassemble(program), "small.asm").target == program.target
    assert decode(encode(program), "small.tpub").target == program.target


@each([["--set", "mxu"], ["--set", "=4"], ["--set", "mux=4"], ["--set", "mxu=four"]])
def test_malformed_sets(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "small.tpu").write_text(SOURCE)
    assert main(["profile", str(tmp_path / "small.tpu"), *arguments]) == 2


@each(target_names())
def test_what_targets_prints_is_the_target(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets", name]) == 0
    assert parse_target(capsys.readouterr().out, name) == load_target(name)
    assert main(["targets", name, "--set", "clock_hz=123e6"]) == 0
    assert parse_target(capsys.readouterr().out, name).clock_hz == 123e6


def test_a_target_is_read_again_when_its_file_has_changed(tmp_path: Path) -> None:
    """Also where the file has the same length and, by the clock of a coarse file system, the same time."""
    text, place = (FOLDER / "tiny.toml").read_text("utf-8"), tmp_path / "mine.toml"
    place.write_text(text)
    first, times = load_target(str(place)), place.stat()
    place.write_text(text.replace("mxu = 4", "mxu = 8"))
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert (first.mxu, load_target(str(place)).mxu) == (4, 8)


def test_the_text_of_a_target_is_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_target("tpu_v1")
    monkeypatch.setattr(tomllib, "loads", None)
    assert load_target("tpu_v1") is first


def test_targets_are_listed_in_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["targets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == target_names()
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", ["tpu_v1_prime", "tpu_edge"])
def test_programs_run_on_the_new_machines(name: str) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (8, 300)).astype(np.float32)
    found, expected = (tpucc.compile_source(SOURCE, target=target).run_quantized(x=x) for target in (name, "tpu_v1"))
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key].values, value.values)


@each(
    [
        ("tpu", "tpu_edge, tpu_v1 or tpu_v1_prime"),
        ("TPU_V1", "tpu_v1 or tpu_v1_prime"),
        ("tpu_v4", "tpu_v4i"),
        ("tiyn", "tiny"),
    ]
)
def test_the_beginning_of_a_name_suggests_the_machines_that_programs_are_made_for(name: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_target(name)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.help[0]) == ("E0501", f"did you mean {meant}?")


def test_no_name_suggests_none() -> None:
    with pytest.raises(UsageError) as caught:
        load_target("")
    assert len(caught.value.diagnostics[0].help) == 1


TINY = (FOLDER / "tiny.toml").read_text()


@each(
    [
        ("clock_hz = 1e300", "clock_hz must be a number from 1 to"),
        ("clock_hz = 1e-300", "clock_hz must be a number from 1 to"),
        ("clock_hz = 1e18", "a tile of weights would take 8.0e\\+12 cycles"),
        ("weight_bandwidth = 1e-300", "weight_bandwidth must be"),
        ("host_bandwidth = 1e300", "host_bandwidth must be"),
        ("host_latency_seconds = 1e300", "host_latency_seconds must be a number of seconds from 0 to 1,000,000"),
        ("host_step_seconds = 999999\nclock_hz = 1e9", "a host step would take .* see host_step_seconds and clock_hz"),
        ("host_elements_per_second = 1\nclock_hz = 1e9", "a host step of a million elements"),
        ("mxu = " + "9" * 10_000, "a number in it has too many digits"),
        ("mxu = " + "9" * 100, "mxu must be an integer from 1 to 1,024, and is a number of more than 40 digits"),
        ("clock_hz = " + "9" * 400, "clock_hz must be a number from 1 to 10\\^18, and is a number of more than 40 digits"),
        ('mxu = "4"', 'mxu must be an integer from 1 to 1,024, and is the text "4"'),
        ("mxu = 4.0", "mxu must be an integer from 1 to 1,024, and is 4.0"),
        ("clock_hz = true", "clock_hz must be a number from 1 to 10\\^18, and is true"),
        ("clock_hz = [1]", "clock_hz must be a number"),
        ('data_type = "float8"', 'data_type must be int8 or bfloat16, and is the text "float8"'),
        ("data_type = [1]", "data_type must be int8 or bfloat16"),
        ("clock_herz = 1e6", "a target has no field clock_herz\n.*did you mean clock_hz"),
        ("x = " + "[" * 3000, "nested too deep"),
        ("x =", "it is no TOML at its end: invalid value"),
        ("cores = 1\ncores = 2", "it is no TOML at its end: the field is there already"),
        ("accumulator_rows = 1", "accumulator_rows must be an integer from 2 to 4,194,304, and is 1$"),
    ]
)
def test_numbers_that_no_machine_has(line: str, words: str) -> None:
    """In words about the field: none of the libraries that read it."""
    changed = {text.split("=")[0].strip() for text in line.split("\n")}
    text = "\n".join([*(kept for kept in TINY.split("\n") if kept.split("=")[0].strip() not in changed), line])
    with pytest.raises(ProgramError, match=words) as caught:
        parse_target(text, "mine.toml")
    assert [d.code for d in caught.value.diagnostics] == ["E0502"]
    assert "`$" not in str(caught.value)
    assert "Expected `" not in str(caught.value)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ProgramError, match=r"it doesn.t say mxu and weight_bandwidth"):
        parse_target("\n".join(line for line in TINY.split("\n") if not line.startswith(("mxu", "weight_bandwidth"))), "mine.toml")


def test_an_override_of_many_digits_is_cut() -> None:
    with pytest.raises(UsageError, match=r"mxu of a target is an integer from 1 to 1,024, not 9{39}…"):
        load_target("tiny", {"mxu": "9" * 10_000})


@each(
    [
        ('"4"', 'the text "4"'),
        ("true", "true"),
        ("[1, 2]", "a list"),
        ("{a = 1}", "a table"),
        ("1979-05-27", "the date or time 1979-05-27"),
    ]
)
def test_every_field_of_another_type_is_said_with_its_range(value: str, found: str) -> None:
    for field, kind in number_fields().items():
        text = "\n".join([*(line for line in TINY.split("\n") if line.split("=")[0].strip() != field), f"{field} = {value}"])
        with pytest.raises(ProgramError) as caught:
            parse_target(text, "mine.toml")
        meant = RANGES[field][2]
        assert caught.value.diagnostics[0].message == f"mine.toml is not a target: {field} must be {meant}, and is {found}"
        assert ("integer" in meant) == (kind is int)

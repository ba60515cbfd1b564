"""What if the machine had another number: the same program, timed again."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest

import tpucc
from tests.support.command_line import run
from tests.support.reports import PROGRAMS, executable_of
from tpucc.explain.retiming import SPEEDS, faster, retimed
from tpucc.explain.tables import what_if_table

STEMS = ("01_hello", "04_digits_mlp", "14_digits_resnet")
QUICK = ("01_hello", "02_iris", "04_digits_mlp")


@pytest.mark.long
@pytest.mark.parametrize("stem", STEMS)
def test_the_machine_as_it_is_gives_the_numbers_of_the_program(stem: str) -> None:
    runtime = executable_of(stem).runtime
    for field in SPEEDS:
        found = retimed(runtime.program, runtime.edges, field, 1.0)
        whole = runtime.stats["end_to_end"]
        assert found.value == getattr(runtime.program.target, field)
        assert (found.cycles, found.seconds, found.bottleneck) == (runtime.stats["cycles"], whole["seconds"], whole["bottleneck"])


@pytest.mark.long
@pytest.mark.parametrize("stem", QUICK)
def test_it_is_what_a_compilation_gives_where_the_program_is_the_same(stem: str) -> None:
    runtime, same = executable_of(stem).runtime, 0
    for field, speed in SPEEDS.items():
        for factor in (0.25, speed.factor, 4.0):
            value = factor * getattr(runtime.program.target, field)
            target = msgspec.structs.replace(runtime.program.target, **{field: value})
            compiled = tpucc.compile(PROGRAMS / f"{stem}.tpu", target=target).runtime
            if compiled.program.instructions.tobytes() != runtime.program.instructions.tobytes():
                continue
            same += 1
            found = retimed(runtime.program, runtime.edges, field, factor)
            whole = compiled.stats["end_to_end"]
            assert (found.cycles, found.seconds, found.bottleneck) == (compiled.stats["cycles"], whole["seconds"], whole["bottleneck"])
    assert same >= len(SPEEDS)


def test_those_that_gain_are_named_the_best_first() -> None:
    runtime = executable_of("05_digits_cnn").runtime
    seconds = runtime.stats["end_to_end"]["seconds"]
    found = faster(runtime.program, runtime.edges, seconds)
    assert [each.field for each in found][:2] == ["host_bandwidth", "clock_hz"]
    assert [each.seconds for each in found] == sorted(each.seconds for each in found)
    assert all(each.seconds < seconds for each in found)
    assert "weight_bandwidth" not in {each.field for each in found}, "all tiles are there long before they are used"
    assert found[0].bottleneck == "matrix unit"


def test_a_rate_at_its_bound_is_left_out() -> None:
    runtime = executable_of("04_digits_mlp").runtime
    target = msgspec.structs.replace(runtime.program.target, host_bandwidth=1e18)
    compiled = tpucc.compile(PROGRAMS / "04_digits_mlp.tpu", target=target).runtime
    assert "host_bandwidth" not in {each.field for each in compiled.faster}


def test_profile_and_the_files_have_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = PROGRAMS / "04_digits_mlp.tpu"
    runtime = executable_of("04_digits_mlp").runtime
    wanted = [asdict(each) for each in runtime.faster]
    assert run("profile", source, "--json") == 0
    assert json.loads(capsys.readouterr().out)["what_if"] == wanted
    assert run("compile", source, "-o", tmp_path, "--emit", "stats", "--quiet") == 0
    assert json.loads((tmp_path / "stats.json").read_bytes())["what_if"] == wanted
    table = what_if_table(runtime)
    assert max(map(len, table.split("\n"))) <= 80
    assert f"{wanted[0]['field']}=" in table.split("\n")[1]

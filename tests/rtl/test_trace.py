"""The registers of a VCD in the report: those of the hardware, cycle by cycle, in the view of the machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.command_line import run
from tests.support.machine import TWO_LAYERS
from tpucc.diagnostics import UsageError
from tpucc.runtime.check import random_inputs
from tpucc.see.page.hardware import read_trace

pytestmark = pytest.mark.annex


@pytest.fixture(scope="module")
def folder(rtl: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, the hardware's trace of it, and the page with both."""
    place = tmp_path_factory.mktemp("trace")
    (place / "two.tpu").write_text(TWO_LAYERS, "utf-8")
    assert run("rtl", "run", place / "two.tpu", "--target", "tiny", "--vcd", place / "two.vcd", "--quiet") == 0
    assert run("report", place / "two.tpu", "--target", "tiny", "--vcd", place / "two.vcd", "-o", place / "two.html", "--quiet") == 0
    return place


def test_the_page_has_the_signals_of_the_run(folder: Path, rtl: ModuleType) -> None:
    """Each in each cycle, from the first in which instructions may start."""
    runtime = tpucc.compile_source(TWO_LAYERS, target="tiny").runtime
    both = rtl.cosimulate(runtime.begun(runtime.parts(runtime.accepted(random_inputs(runtime)))[0]), rtl.hardware())
    trace = read_trace((folder / "two.vcd").read_text("utf-8"), "two.vcd", runtime.program)
    assert trace.cycles == both.run.cycles
    assert {"finished", "weights_starts", "accumulators_2_data", "host_row"} <= trace.values.keys()
    shared = trace.values.keys() & both.run.signals.keys()
    assert {name: trace.values[name] for name in shared} == {name: both.run.signals[name] for name in shared}
    assert len(shared) > 20
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', (folder / "two.html").read_text("utf-8"), re.DOTALL)
    assert found is not None
    hardware = json.loads(found[1])["hardware"]
    assert "56 cycles, 56 by the clock; 16 instructions started, each in the cycle in which the clock starts it." in hardware["words"]
    starts, texts = hardware["parts"]["accumulators"]["column 2"]
    writes = both.run.when("accumulators_2")
    totals = np.array(both.run.signals["accumulators_2_data"], np.uint32).view(np.int32)
    for cycle in range(trace.cycles + 1):
        row = both.run.signals["accumulators_2_row"][cycle]
        wanted = f"row {row}: {totals[cycle]}".replace("-", "−") if cycle in writes else "–"
        assert texts[np.searchsorted(starts, cycle, side="right") - 1] == wanted


@each(
    {
        "no trace": ("hello", "it has no signal finished"),
        "of another width": ("column", "it has no signal accumulators_3"),
        "cut off": ("cut", "it ends before 25 instructions are decoded"),
        "half of it": ("half", "the host unit starts 1 instruction, and the program has 2 for it"),
        "back in time": ("back", "cycle 3 follows cycle 8[0-9]"),
        "without an end": ("long", "cycle 100,000,000 follows cycle 8[0-9]; at most there are 1,000,000"),
        "no width": ("thin", "host_writes_host_data has 0 bits, and a value has 8"),
        "too many bits": ("wide", "host_row has a value of 200,000 bits"),
    }
)
def test_what_is_no_trace_of_the_program(kind: str, why: str, folder: Path) -> None:
    program = tpucc.compile_source(TWO_LAYERS, target="tiny").runtime.program
    text = (folder / "two.vcd").read_text("utf-8")
    changed = {
        "hello": "hello",
        "column": text.replace("accumulators_3", "other"),
        "cut": text[: text.index("#200\n")],
        "half": text[: text.index("#600\n")] + "#800\n",
        "back": f"{text}#30\n1host_running\n",
        "long": f"{text}#1000000000\n",
        "thin": re.sub(r"wire \d+ (host_writes_host_data)", r"wire 0 \1", text),
        "wide": f"{text}b{'1' * 200_000} host_row\n",
    }[kind]
    with pytest.raises(UsageError, match=f"E0965: two.vcd is no trace of this program: {why}"):
        read_trace(changed, "two.vcd", program)

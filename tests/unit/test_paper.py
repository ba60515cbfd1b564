"""The comparison with the paper: published figures agree with each other, ours with compiling, and what is printed fits."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import each
from tpucc.cli.main import main
from tpucc.cli.paper_command import section_text
from tpucc.diagnostics import Source, UsageError
from tpucc.explain.paper.applications import FREE_HOST, find_programs, measure
from tpucc.explain.paper.comparison import TABLE3, compare, scaled
from tpucc.explain.paper.figures import UNKNOWN, Figure, Section, reasons, with_reasons
from tpucc.explain.paper.published import Peak, published
from tpucc.target import load_target

CHAIN = """
weights random(seed=0)
model {name}(x: f32[{batch}, {width}]) -> f32[{batch}, {width}]:
    for i in range({layers}):
        weight w: f32[{width}, {width}] = "fc{{i}}.w"
        x = relu(x @ w)
    return x
"""
V1 = load_target("tpu_v1")
KEYS = [
    "machine",
    "matrix_600",
    "table_3",
    "table_3_plain",
    "stream",
    "table_7",
    "table_8",
    "roofline",
    "table_4",
    "figure_11",
    "tpu_prime",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small stand-ins for the paper's programs."""
    path = tmp_path_factory.mktemp("paper")
    (path / "mlp1.tpu").write_text(CHAIN.format(name="mlp1", batch=168, width=300, layers=2))
    (path / "mlp0.tpu").write_text(CHAIN.format(name="mlp0", batch=200, width=500, layers=3))
    (path / "other.tpu").write_text("not a program")
    return path


@pytest.fixture(scope="module")
def sections(folder: Path) -> dict[str, Section]:
    return {section.key: section for section in compare(folder, V1)}


def ours(section: Section, row: str, column: str = "") -> float | None:
    return next(figure.ours for figure in section.figures if (figure.row, figure.column) == (row, column))


@each(list(published().applications))
def test_the_published_rows_add_up(name: str) -> None:
    rows = published().applications[name].table3
    assert set(rows) == set(TABLE3)
    total = rows["array_active"] + rows["weight_stall"] + rows["weight_shift"] + rows["non_matrix"]
    assert total == pytest.approx(100, abs=0.11)
    assert rows["useful_macs"] + rows["unused_macs"] == pytest.approx(rows["array_active"], abs=0.11)


def test_the_published_means() -> None:
    found = published().applications.values()
    assert round(math.fsum(a.model_error for a in found) / len(found)) == 8
    assert math.fsum(a.share for a in found) == 95
    assert max(a.buffer_mib for a in found) < 14


@each(published().peaks)
def test_the_published_peaks_come_out_by_arithmetic(peak: Peak) -> None:
    target = load_target(peak.target)
    computed = peak.chips * target.cores * target.matrix_units * target.mxu**2 * 2 * target.clock_hz / 1e12
    assert computed == pytest.approx(peak.chips * target.chip_peak_ops / 1e12)
    if abs(computed - peak.published) > 0.02 * peak.published:
        assert (peak.target, peak.published) == ("tpu_v3", 420.0)
        assert round(computed, 1) == 492.8
        assert "419.4" in peak.remark
        assert round(computed * 800e6 / target.clock_hz, 1) == 419.4


@pytest.mark.long
def test_the_exact_arithmetic(sections: dict[str, Section]) -> None:
    machine = sections["machine"]
    assert round(ours(machine, "peak") or 0, 2) == 91.75
    assert ours(machine, "fetch of a weight tile") == 1349
    assert round(ours(machine, "ridge") or 0) == 1349
    assert round(ours(machine, "ridge of TPU′") or 0) == 250
    assert (ours(machine, "accumulators"), ours(machine, "unified buffer")) == (4, 24)


def test_the_matrix_of_600(sections: dict[str, Section]) -> None:
    matrix = sections["matrix_600"]
    assert (ours(matrix, "256×256: steps"), ours(matrix, "512×512: steps")) == (9, 4)
    assert ours(matrix, "256×256: fetching them") == pytest.approx(9 * 1349 / 700)
    assert ours(matrix, "512×512: fetching them") == pytest.approx(4 * round(512**2 / 34e9 * 700e6) / 700)
    assert ours(matrix, "256×256: cells in use") == pytest.approx(100 * 600**2 / 768**2)
    assert (ours(matrix, "256×256: the whole layer") or 0) > (ours(matrix, "256×256: fetching them") or 0)


def test_ours_are_the_numbers_of_a_full_compilation(folder: Path, sections: dict[str, Section]) -> None:
    """Calibration is left out here, and time doesn't depend on it."""
    stats = tpucc.compile(folder / "mlp0.tpu").stats
    for key, row in TABLE3.items():
        assert ours(sections["table_3"], row, "MLP0") == (stats["tops"] if key == "tops" else stats["breakdown"][key])
        assert ours(sections["table_3"], row, "CNN1") is None
    assert ours(sections["table_8"], "unified buffer", "MLP0") == stats["ub_peak_bytes"] / 2**20
    assert ours(sections["table_4"], "TPU") == pytest.approx(200 / stats["seconds"])
    assert ours(sections["table_4"], "TPU, host 21 % more") == pytest.approx(200 / stats["seconds"] / 1.21)
    assert ours(sections["table_7"], "error in cycles", "MLP0") == pytest.approx(100 * abs(12.3 / stats["tops"] - 1))
    intensity = 200 * 500**2 * 3 / (3 * 4 * 65536)
    assert ours(sections["roofline"], "intensity", "MLP0") == pytest.approx(intensity)
    assert ours(sections["roofline"], "roof there", "MLP0") == pytest.approx(2 * intensity * 0.034)


def test_the_host_is_excluded_as_in_the_paper() -> None:
    """The compiler chooses by the time of device and link alone: here the host packs the windows, which takes it longer than that saves."""
    text = (
        'weights random(seed=0)\nmodel m(x: f32[50, 8, 8, 1]):\n    weight k: f32[3, 3, 1, 16]\n    return conv2d(x, k, padding="same")\n'
    )
    found = measure(Source("m.tpu", text), Path(), V1).stats
    free, own = (tpucc.compile_source(text, overrides=overrides).stats for overrides in (dict(FREE_HOST), {}))
    assert found["cycles"] == free["cycles"] < own["cycles"]
    assert found["target"] == "tpu_v1"


def test_programs_without_optimisation_are_those_of_level_0(folder: Path, sections: dict[str, Section]) -> None:
    stats = tpucc.compile(folder / "mlp0.tpu", level=0).stats
    for key, row in TABLE3.items():
        assert ours(sections["table_3_plain"], row, "MLP0") == (stats["tops"] if key == "tops" else stats["breakdown"][key])
        assert ours(sections["table_3_plain"], row, "CNN0") is None
    assert "CNN1" not in sections["table_3_plain"].columns


@each(
    [
        ("weight memory ×4", {"weight_bandwidth": 136e9}),
        ("clock ×4", {"clock_hz": 2.8e9}),
        ("clock and accumulators ×4", {"clock_hz": 2.8e9, "accumulator_rows": 16384}),
        ("512×512 unit", {"mxu": 512, "accumulator_rows": 2048, "unified_buffer_rows": 49152}),
        ("512×512, accumulators ×4", {"mxu": 512, "accumulator_rows": 8192, "unified_buffer_rows": 49152}),
    ]
)
def test_sensitivities_are_ratios_of_compiled_programs(
    row: str, overrides: dict[str, float], folder: Path, sections: dict[str, Section]
) -> None:
    path = folder / "mlp1.tpu"
    ratio = tpucc.compile(path).stats["seconds"] / tpucc.compile(path, overrides=overrides).stats["seconds"]
    assert ours(sections["figure_11"], row, "MLP1") == pytest.approx(ratio)


def test_the_means_of_tpu_prime(folder: Path, sections: dict[str, Section]) -> None:
    prime = sections["tpu_prime"]
    paths = [folder / f"{name}.tpu" for name in ("mlp0", "mlp1")]
    ratios = [tpucc.compile(p).stats["seconds"] / tpucc.compile(p, target="tpu_v1_prime").stats["seconds"] for p in paths]
    assert [ours(prime, name) for name in ("MLP0", "MLP1")] == pytest.approx(ratios)
    assert ours(prime, "geometric mean") == pytest.approx(math.sqrt(ratios[0] * ratios[1]))
    assert ours(prime, "weighted mean") == pytest.approx(sum(ratios) / 2)
    assert "LSTM0, LSTM1, CNN0, CNN1" in prime.notes[-1]


def test_a_wider_unit_keeps_the_bytes_of_its_buffers() -> None:
    wide = scaled(V1, next(v.scale for v in published().variants if v.name == "matrix"))
    assert wide.unified_buffer_rows * wide.mxu == V1.unified_buffer_rows * V1.mxu
    assert wide.accumulator_rows * wide.mxu == V1.accumulator_rows * V1.mxu
    more = scaled(V1, next(v.scale for v in published().variants if v.name == "matrix+"))
    assert more.accumulator_rows * more.mxu == 4 * V1.accumulator_rows * V1.mxu


def test_sections_come_in_the_order_of_the_paper_s_story(sections: dict[str, Section]) -> None:
    assert list(sections) == KEYS


def test_programs_are_found_in_the_order_of_the_paper(folder: Path) -> None:
    assert list(find_programs(folder)) == ["mlp0", "mlp1"]


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_a_folder_without_programs(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"none of the paper's programs \(mlp0.tpu") as error:
        find_programs(tmp_path / name)
    assert error.value.diagnostics[0].code == "E0532"
    assert main(["paper", "--programs", str(tmp_path / name)]) == 2
    captured = capsys.readouterr()
    assert "--programs DIR" in captured.err
    assert not captured.out


@each(
    [
        (Figure("r", "", "%", 50.0, 54.9), 4.9, False, ("50.0", "54.9", "+4.9")),
        (Figure("r", "", "%", 50.0, 44.9), -5.1, True, ("50.0", "44.9", "-5.1")),
        (Figure("r", "", "TOPS", 50.0, 54.9), 9.8, False, ("50.00", "54.90", "+9.8%")),
        (Figure("r", "", "TOPS", 50.0, 44.0), -12.0, True, ("50.00", "44.00", "-12.0%")),
        (Figure("r", "", "×", 1.0, 1.2, about=True), 20.0, False, ("~1.00", "1.20", "+20.0%")),
        (Figure("r", "", "×", 1.0, 0.7, about=True), -30.0, True, ("~1.00", "0.70", "-30.0%")),
        (Figure("r", "", "%", 0.0, -1e-9), -1e-9, False, ("0.0", "0.0", "+0.0")),
        (Figure("r", "", "1/s", 225000.0, None), None, False, ("225,000", "–", "–")),
        (Figure("r", "", "MiB", None, 2.0), None, False, ("–", "2.00", "–")),
        (Figure("r", "", "MiB", 0.0, 2.0), None, False, ("0.00", "2.00", "–")),
    ]
)
def test_differences(figure: Figure, difference: float | None, large: bool, texts: tuple[str, str, str]) -> None:
    assert figure.difference == (None if difference is None else pytest.approx(difference))
    assert figure.large == large
    assert figure.texts() == texts


def test_every_reason_is_of_a_figure_that_there_is(sections: dict[str, Section]) -> None:
    for key, row, column, way in reasons():
        assert way in ("more", "less")
        assert row in sections[key].rows, (key, row)
        assert column in ("", *sections[key].columns)


def test_large_differences_have_reasons_and_small_ones_none() -> None:
    figures = (
        Figure("4 weight stall", "MLP0", "%", 50.0, 60.0),
        Figure("4 weight stall", "MLP1", "%", 50.0, 70.0),
        Figure("4 weight stall", "LSTM0", "%", 50.0, 51.0),
        Figure("4 weight stall", "LSTM1", "%", 50.0, 20.0),
        Figure("9 TOPS", "CNN0", "TOPS", 86.0, 70.0),
    )
    section = with_reasons(Section("table_3", "", figures))
    reasons = dict(section.reasons())
    assert "add up to 100 %" in reasons["4 weight stall (MLP0, MLP1)"]
    assert reasons["4 weight stall (LSTM1)"] == UNKNOWN
    assert "71.7 TOPS" in reasons["9 TOPS (CNN0)"]
    assert len(reasons) == 3


def test_numbers_in_the_reasons_are_the_published_ones() -> None:
    cnn0 = published().applications["cnn0"].table3
    assert f"{100 * cnn0['tops'] / 91.75:.1f}" == "93.7"
    assert f"{cnn0['useful_macs'] / 100 * V1.peak_ops / 1e12:.1f}" == "71.7"
    assert f"{2 * 64 * 0.034:.2f}" == "4.35"
    assert int(published().applications["mlp0"].buffer_mib * 2**20 / (200 * 2000)) == 28
    for lstm in ("lstm0", "lstm1"):
        rows = published().applications[lstm].table3
        assert rows["raw_stall"] + rows["input_stall"] > rows["non_matrix"]


def test_the_tables_fit_80_columns(sections: dict[str, Section]) -> None:
    for section in sections.values():
        text = section_text(section)
        assert max(map(len, text.splitlines())) <= 80
        assert "…" not in text
        assert all(row in text for row in section.rows)
        assert all(re.search(rf"\b{column}\b", text) for column in section.columns)


@pytest.mark.long
def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["paper", "--programs", str(folder), "--set", "weight_bandwidth=68e9", "--json"]
    assert main(arguments) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["target"] == "tpu_v1 (weight_bandwidth=68e9)"
    assert [section["key"] for section in found["sections"]] == KEYS
    fetch = next(figure for figure in found["sections"][0]["figures"] if figure["row"] == "fetch of a weight tile")
    assert fetch["ours"] == round(1349.27 / 2)
    assert fetch["difference_unit"] == "percent"
    assert fetch["large"]
    assert not captured.err


def test_the_command_refuses_a_machine_without_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "--programs", str(folder), "--target", "tpu_v3"]) == 2
    captured = capsys.readouterr()
    assert "E0530" in captured.err
    assert not captured.out

"""The gallery: every program runs as its references and ONNX Runtime do, here at small sizes; a page says what there is to see."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import tpucc
from tests.support.cases import one_of
from tpucc.interop.programs import examples, folder

pytestmark = pytest.mark.long

SMALL: Mapping[str, Mapping[str, int]] = {
    "bert_tiny": {"batch": 2, "length": 9, "width": 24, "heads": 3, "words": 40},
    "digits_mobilenet": {"batch": 20},
    "digits_vit": {"batch": 20},
    "dlrm": {"batch": 3, "categories": 3, "entries": 20, "width": 5},
    "gpt2_block": {"length": 7, "width": 24, "heads": 3},
    "gru": {"batch": 3, "time": 5, "features": 7, "units": 9},
    "mlperf_autoencoder": {"batch": 2},
    "mlperf_ds_cnn": {"filters": 20},
    "mlperf_mobilenet": {},
    "mlperf_resnet8": {"batch": 2},
    "mobilenet_v2": {"size": 32},
    "shufflenet": {"size": 32},
    "tcn": {"batch": 2, "time": 21, "features": 3, "filters": 10},
    "unet": {"size": 16, "filters": 5},
    "vit_tiny": {"size": 32, "layers": 2, "width": 24},
}
"""Their params, where they run fast."""


@pytest.mark.parametrize("name", one_of(4, SMALL))
def test_a_program_of_the_gallery_runs_as_its_references_do(name: str) -> None:
    executable = tpucc.compile(folder() / "gallery" / f"{name}.tpu", params=SMALL[name])
    verdict = tpucc.judge(executable, seed=3, against="onnxruntime")
    assert (verdict.equal, verdict.against) == (True, "onnxruntime"), verdict


@pytest.mark.soak
@pytest.mark.parametrize("name", SMALL)
def test_its_report_is_made(name: str, tmp_path: Path) -> None:
    """With everything that the report draws and records, whatever the network is made of."""
    tpucc.compile(folder() / "gallery" / f"{name}.tpu", params=SMALL[name]).report().save(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_the_page_of_networks_names_all_of_the_gallery() -> None:
    gallery = {path.stem for path in (folder() / "gallery").glob("*.tpu")}
    assert gallery == set(SMALL)
    assert gallery <= set(examples())
    page = (Path(__file__).resolve().parents[2] / "docs" / "networks.md").read_text("utf-8")
    assert [name for name in sorted(gallery) if f"`{name}`" not in page] == []

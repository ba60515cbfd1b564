"""The ONNX package's own tests of operators: what tpucc reads of them gives the values that they expect. Making them takes long."""

from __future__ import annotations

import pytest

from tests.support.onnx_nodes import PAGE, cases, outcome, page
from tpucc.interop.onnx.reading.operators.rows import ROWS

pytestmark = pytest.mark.soak
UNTRIED = {
    "CastLike": "of computed values it changes nothing, which the package's tests don't show",
    **dict.fromkeys(
        (
            "ConvInteger",
            "DequantizeLinear",
            "DynamicQuantizeLinear",
            "LayerNormalization",
            "MatMulInteger",
            "OneHot",
            "Trilu",
            "QuantizeLinear",
        ),
        "tests/unit/test_onnx_reading.py compares them with ONNX Runtime",
    ),
    "SimplifiedLayerNormalization": "ONNX Runtime's, not ONNX's",
}
"""Operators that none of the package's tests shows as tpucc reads them."""


def test_the_values_of_the_onnx_packages_own_tests() -> None:
    onnx = pytest.importorskip("onnx")
    found = [outcome(case) for case in cases()]
    assert not [one.name for one in found if one.kind == "wrong"]
    shown = frozenset().union(*(one.ops for one in found if one.kind == "passed"))
    assert {op for op, row in ROWS.items() if row.build is not None and "." not in op} - shown <= UNTRIED.keys()
    written = PAGE.read_text("utf-8")
    if f"`onnx` {onnx.__version__} " in written:
        assert written == page(found)

"""What the error of an operator's rule must be: its code, whom it blames, and words that a student can use."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from tpucc.ir import TensorType
from tpucc.ops import OPS
from tpucc.ops.opdef import RuleError

Case = tuple[str, Any, tuple[TensorType, ...], str, tuple[int | str, ...], str]
"""An operator, its attributes, its operands' types, and the error: its code, the operands or attributes to blame, and words of it."""


def require_refused(case: Case) -> None:
    """Every hole has an operand; blame goes to operands and attributes that exist; nothing is too long."""
    name, attributes, types, code, about, words = case
    with pytest.raises(RuleError) as caught:
        OPS[name].infer(attributes, types)
    error = caught.value
    assert (error.code, error.about) == (code, about)
    assert words in f"{error.message} | {error.help}"
    message, mend = error.named([f"x{index}" for index in range(len(types))])
    assert not set("{}") & set(message + mend)
    assert len(message) < 120
    assert len(mend) < 160
    assert set(about) <= {*range(len(types) + 1), *(field.name for field in fields(attributes)), "alpha"}

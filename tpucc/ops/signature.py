"""How an operator is called, as text: `max_pool(x, size=2, stride=None, padding="valid")`."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, fields
from typing import Any

from tpucc.ops.opdef import OpDef, Operand


def signature(operator: OpDef[Any]) -> str:
    """The operator's name, its operands and its attributes with their defaults, as a call has them."""
    arguments = [_operand(operand) for operand in operator.operands] + [_attribute(field) for field in fields(operator.attributes)]
    return f"{operator.name}({', '.join(arguments)})"


def _operand(operand: Operand) -> str:
    if operand.many:
        return f"[{operand.name}, …]"
    return f"{operand.name}?" if operand.optional else operand.name


def _attribute(field: Field[Any]) -> str:
    if field.default is MISSING:
        return field.name
    return f"{field.name}={json.dumps(field.default) if isinstance(field.default, str) else field.default}"

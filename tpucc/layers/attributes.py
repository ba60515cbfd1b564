"""The attribute classes of everything that may stand in a graph: what reading a graph's text form needs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tpucc.layers.kinds import LAYERS
from tpucc.ops import OPS

ATTRIBUTES: Mapping[str, type] = MappingProxyType({**{name: op.attributes for name, op in OPS.items()}, **LAYERS})

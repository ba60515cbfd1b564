"""Channels in another order: a reshape, a transpose and a reshape of them become one operator, which the matrix unit computes."""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.ops.names import shuffle_lanes as shuffled
from tpucc.ops.names import transpose
from tpucc.ops.opdef import Expression
from tpucc.passes.rules import Match, Rule, called, once, rule, rules_pass, value, view


@rules_pass("shuffle-lanes", "makes one operator of the reshapes and the transpose that put channels into another order", level=1)
def shuffle_lanes() -> Iterator[Rule]:
    """Rewrites `reshape(transpose(reshape(x)))` to `shuffle_lanes(x)` where only the values of each row change places, as in ShuffleNet
    (Zhang et al., arXiv 1707.01083). The device can turn no row into several, but it can pick lanes by a product.
    """
    turned = once(called("turned", transpose(once(called("divided", view(value("x")))))))
    yield rule("lanes in another order", view(turned), _shuffled)


def _shuffled(m: Match) -> Expression | None:
    """`shuffle_lanes` in the place of the last reshape; None where rows change places, or values change rows."""
    rows, rank = len(m.x.type.shape) - 1, m.divided.type.rank
    perm = [axis % rank for axis in transpose.attributes_of(m.turned).perm]
    kept = m.x.type.shape[:-1] == m.divided.type.shape[:rows] and perm[:rows] == [*range(rows)] and m.root.type.shape == m.x.type.shape
    if rows < 1 or rank < rows + 2 or not kept:
        return None
    return shuffled(m.x, sizes=m.divided.type.shape[rows:], perm=tuple(axis - rows for axis in perm[rows:]))

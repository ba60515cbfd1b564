"""Lab 11, a solution for every term."""

from pyrtl import Const, Register, concat, select, signed_add, signed_mult

from tpucc.rtl.element import Activation, Element, Weight
from tpucc.rtl.wires import delayed

COUNTS, MARKS, SWITCH = "{{counts}}", "{{marks}}", "{{switch}}"


def element(row, column, left, above, sum_above):
    name = f"element_{row}_{column}"
    x, switch = Register(len(left.x), f"{name}_x"), Register(1, f"{name}_switch")
    shadow, tag = Register(8, f"{name}_shadow"), Register(len(above.tag), f"{name}_tag")
    weight, total = Register(8, f"{name}_weight"), Register(32, f"{name}_sum")
    takes_shadow = left.switch if SWITCH == "take" else ~left.switch
    used = select(takes_shadow, shadow, weight)
    weight.next <<= used
    total.next <<= signed_add(sum_above, signed_mult(left.x, used))
    x.next <<= left.x
    switch.next <<= left.switch
    arrives, passed = tags(row, above.tag)
    shadow.next <<= select(arrives, above.weight, shadow)
    tag.next <<= select(arrives, passed, tag)
    return Element(Activation(x, switch), Weight(shadow, tag), total)


def tags(row, tag):
    """Whether the element of a row takes the weight, and the tag that it gives on."""
    if MARKS == "zero":
        return (tag > row, tag) if COUNTS == "row" else (tag > 0, (tag - 1)[: len(tag)])
    number, is_weight = tag[1:], tag[0]
    if COUNTS == "row":
        return is_weight & (number >= row), tag
    return is_weight, concat((number - 1)[: len(number)], number > 0)


def array(x, switch, weights, tag):
    left = [Activation(delayed(lane, r + 1, f"x_{r}"), delayed(switch, r + 1, f"switch_{r}")) for r, lane in enumerate(x)]
    above = [Weight(delayed(lane, c + 1, f"weight_{c}"), delayed(tag, c + 1, f"tag_{c}")) for c, lane in enumerate(weights)]
    sums = [Const(0, 32) for _ in weights]
    for r, entering in enumerate(left):
        for c in range(len(weights)):
            made = element(r, c, entering, above[c], sums[c])
            entering, above[c], sums[c] = made.right, made.down, made.sum
    return sums

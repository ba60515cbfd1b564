"""Windows: steps in a row that stand at several places of a program alike, and which of them a person might make a function of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

from tpucc.interop.decompile.costs import call_cost, is_heavy, numbers, step_cost
from tpucc.interop.decompile.expressions import is_slice
from tpucc.interop.decompile.program import Body, Number, Operand, Step, Value, Weight
from tpucc.ops import legalisation_of
from tpucc.ops.constant import ConstantAttributes
from tpucc.ops.opdef import Arithmetic, Clamp, Table
from tpucc.ops.slice import SliceAttributes

LONGEST = 64
"""Steps of a window, at most."""
ENTRIES, EXITS = 6, 3
"""Tensors that a function takes and returns, at most: a quantised cell takes its two states, and a part of the inputs for each of four
gates."""
FAR = 1 << 30
"""Steps to what isn't computed in a body."""
LATE = 0.5
"""By how much a function is worse that begins in the middle of a layer."""


Kinds = Mapping[int, Sequence[Hashable]]
"""What is alike of the steps of each body, by its identity."""


class Chain:
    """Which steps of a body are alike, and read what as many steps before them computed."""

    def __init__(self, kinds: Sequence[Hashable], distances: Sequence[Sequence[int]]) -> None:
        self.kinds, self.distances = kinds, distances
        self._differing: dict[int, list[int]] = {}

    def repeats(self, start: int, stop: int, period: int) -> bool:
        """Whether all steps from `start` to `stop` stand `period` steps later once more. What comes from farther away doesn't count, as all
        steps of a sequence take parts of the inputs."""
        if start < 0 or stop + period > len(self.kinds):
            return False
        if period not in self._differing:
            differing = (not self._alike(place, place + period, period) for place in range(len(self.kinds) - period))
            self._differing[period] = list(accumulate(differing, initial=0))
        return self._differing[period][start] == self._differing[period][stop]

    def _alike(self, a: int, b: int, period: int) -> bool:
        if self.kinds[a] != self.kinds[b]:
            return False
        if len(self.distances[a]) != len(self.distances[b]):  # a number may stand where the other has a value
            return False
        return all(x == y or (x > period and y > period) for x, y in zip(self.distances[a], self.distances[b], strict=True))


Chains = Mapping[int, Chain]
"""That of each body, by its identity."""


@dataclass(frozen=True, slots=True)
class Window:
    """`length` steps of a body from `start` on."""

    body: Body
    start: int
    length: int

    @property
    def steps(self) -> Sequence[Step]:
        return self.body.steps[self.start : self.start + self.length]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Windows of one length that are alike and don't overlap, by their bodies and starts, and the text that a function for them replaces by
    its calls."""

    places: tuple[tuple[Body, int], ...]
    length: int
    bound: float

    @property
    def windows(self) -> tuple[Window, ...]:
        return tuple(Window(body, start, self.length) for body, start in self.places)

    @property
    def share(self) -> float:
        """What part of the text that it saves counts: less where it begins in the middle of a layer."""
        return 1 if _begins_a_layer(Window(*self.places[0], self.length)) else LATE

    @property
    def most(self) -> float:
        """What it may save at best."""
        return self.share * self.bound


Read = tuple[int, Hashable]
"""An operand by a number, and what it is where a window reads it first: its rank, or "key" of a weight; None of a number of the source."""


@dataclass(slots=True)
class _Growing:
    """A window while steps are added to it: what it reads from outside, its weights and its values, all numbered as they come."""

    body: Body
    start: int
    numbers: dict[int, int] = field(default_factory=dict)

    def token(self, operands: Sequence[Read], results: Sequence[int]) -> Hashable:
        """A step as windows that are alike have it."""
        numbers, found = self.numbers, list[Hashable]()
        for operand, what in operands:
            if what is None:
                found.append(None)
            elif (number := numbers.get(operand)) is not None:
                found.append(number)
            else:
                found.append(what)
                numbers[operand] = len(numbers)
        for result in results:
            numbers[result] = len(numbers)
        return tuple(found)


def _tokens(body: Body) -> list[tuple[list[Read], list[int]]]:
    """What the steps of a body read and make, by numbers."""
    own: dict[Operand, int] = {}

    def read(operand: Operand) -> Read:
        if isinstance(operand, Number):
            return -1, None
        return own.setdefault(operand, len(own)), "key" if isinstance(operand, Weight) else f"rank {len(body.shapes[operand][0])}"

    return [(list(map(read, step.operands)), [own.setdefault(result, len(own)) for result in step.results]) for step in body.steps]


def candidates(bodies: Sequence[Body], kinds: Kinds, chained: Chains) -> Iterator[Candidate]:
    """All sets of windows that are alike, by length: those that are alike at one length are looked at for the next."""
    calls = cache(call_cost)
    costs = {id(body): [step_cost(step, calls) for step in body.steps] for body in bodies}
    groups: list[list[_Growing]] = [
        [_Growing(body, start) for body in bodies for start in range(len(body.steps)) if _may_begin(body, start)]
    ]
    steps = {id(body): _tokens(body) for body in bodies}
    for length in range(1, LONGEST + 1):
        extended: dict[Hashable, list[_Growing]] = defaultdict(list)
        for number, group in enumerate(groups):
            for window in group:
                body, last = id(window.body), window.start + length - 1
                if last < len(kinds[body]):
                    extended[number, kinds[body][last], window.token(*steps[body][last])].append(window)
        # the last one, as the first of a run reads what isn't made by a step like it
        groups = [group for group in extended.values() if len(group) > 1 and not _is_run(group[-1], length, chained, 3)]
        for group in groups if length > 1 else ():
            first = group[0]
            if _is_run(first, length, chained, 2):
                continue
            places = _apart(group, length)
            if len(places) > 1:
                cost = sum(costs[id(first.body)][first.start : first.start + length])
                yield Candidate(places, length, cost * (len(places) - 1))


def kind_of(body: Body, step: Step) -> Hashable:
    """What alike steps have in common, wiring aside."""
    ranks = tuple(len(body.shapes[result][0]) for result in step.results)
    weights = tuple(len(operand.shapes[0]) for operand in step.operands if isinstance(operand, Weight))
    return step.op, id(step.function), ranks, weights, len(step.operands), _structure(step)


def chained_steps(body: Body, kinds: Sequence[Hashable]) -> Chain:
    """The steps with how many steps before them their operands are made: in a run of layers these are the same for each. What a slice is
    of doesn't count."""
    makers = {result: place for place, step in enumerate(body.steps) for result in step.results}
    found: list[list[int]] = []
    for place, step in enumerate(body.steps):
        read = [] if is_slice(step) else [operand for operand in step.operands if isinstance(operand, Value)]
        found.append([place - makers[operand] if operand in makers else FAR for operand in read])
    return Chain(kinds, found)


def _structure(step: Step) -> Hashable:
    """What an operator's attributes must have in common so that one text can stand for all."""
    if not step.attributes:
        return None
    first = step.attributes[0]
    if isinstance(first, SliceAttributes):
        return first.squeeze, first.steps
    return first.value if isinstance(first, ConstantAttributes) else None


def _may_begin(body: Body, start: int) -> bool:
    """Whether a function may begin with a step: parts of a value are taken where it is called."""
    step = body.steps[start]
    return bool(step.operands) and not (step.attributes and isinstance(step.attributes[0], SliceAttributes))


def _is_run(window: _Growing, length: int, chained: Chains, times: int) -> bool:
    """Whether a window is some steps at least so many times: then these are the window to look at."""
    chain, start, stop = chained[id(window.body)], window.start, window.start + length
    return any(chain.repeats(start, stop - period, period) for period in range(1, length // times + 1))


def _apart(group: Sequence[_Growing], length: int) -> tuple[tuple[Body, int], ...]:
    """The places of the windows that don't overlap, from the front."""
    found: list[tuple[Body, int]] = []
    last, stop = None, 0
    for window in group:
        if window.body is not last or stop <= window.start:
            found.append((window.body, window.start))
            last, stop = window.body, window.start + length
    return tuple(found)


def last_readers(body: Body) -> dict[Value, int]:
    """For each value the last step that reads it; what the body returns is read after all steps."""
    found: dict[Value, int] = {}
    for place, step in enumerate(body.steps):
        found.update({operand: place for operand in step.operands if isinstance(operand, Value)})
    found.update({result: len(body.steps) for result in body.results if isinstance(result, Value)})
    return found


def exits_of(windows: Sequence[Window], readers: dict[int, dict[Value, int]]) -> tuple[tuple[int, int], ...]:
    """The results that something outside of a window reads, the last first: each by its step and its place among the step's results. Where
    they are more than a function has, some of them."""
    found: set[tuple[int, int]] = set()
    for window in windows:
        if len(found) > EXITS:
            break
        last = readers[id(window.body)]
        for place, step in enumerate(window.steps):
            for index, result in enumerate(step.results):
                if last.get(result, -1) >= window.start + window.length:
                    found.add((place, index))
    return tuple(sorted(found, reverse=True))


def is_natural(windows: Sequence[Window], chained: Chains) -> bool:
    """Whether a function of these windows is one that a person might write.

    It doesn't begin with an activation of layers, which belongs to the layer before. Its steps depend on each other. And it takes no part
    of a run of equal layers, which is a loop, and none whose layers have numbers of their own.
    """
    first = windows[0].steps[0]
    is_activation = first.function is None and isinstance(legalisation_of(first.op), Table | Clamp)
    if is_activation and any(map(is_heavy, windows[0].steps)):
        return False
    cuts = 0
    for window in windows:
        if (cut := _cuts_a_run(window, chained[id(window.body)])) == "after":
            return False
        cuts += bool(cut)
    if 2 * cuts > len(windows) or not _is_connected(windows[0]):
        return False
    return not _has_a_run_with_numbers(windows, chained[id(windows[0].body)])


def _has_a_run_with_numbers(windows: Sequence[Window], chain: Chain) -> bool:
    """Whether windows have a run of layers, each of the result of the one before, whose numbers differ from layer to layer and from window
    to window: with lists of these it is a loop where it stands, and in a function all its numbers would be parameters."""
    for start, period in _runs(windows[0], chain):
        found = [[numbers(step) for step in window.steps[start : start + 2 * period]] for window in windows]
        if found[0][:period] != found[0][period:] and any(each != found[0] for each in found):
            return True
    return False


def _runs(window: Window, chain: Chain) -> Iterator[tuple[int, int]]:
    """Runs of three layers or blocks in a window, each of the result of the one before: where they begin, and the steps of one."""
    heavy = list(map(is_heavy, window.steps))
    for period in range(1, window.length // 3 + 1):
        for start in range(window.length - 3 * period + 1):
            begin, middle, end = (window.start + start + times * period for times in range(3))
            if any(heavy[start : start + period]) and chain.repeats(begin, end, period):
                distances = ((place, distance) for place in range(middle, end) for distance in chain.distances[place])
                if any(begin <= place - distance < middle for place, distance in distances):
                    yield start, period


def _begins_a_layer(window: Window) -> bool:
    """Whether a window's first step is a layer, unless it has none."""
    first = window.steps[0]
    has_weights = any(isinstance(operand, Weight) for operand in first.operands)
    norm = has_weights and (first.function is not None or not isinstance(legalisation_of(first.op), Arithmetic))
    return norm or is_heavy(first) or not any(map(is_heavy, window.steps))


def _cuts_a_run(window: Window, chain: Chain) -> str:
    """Whether the last steps of a window stand "after" it once more, or else the first ones "before" it, three times in all; empty if
    neither."""
    first, last = window.start, window.start + window.length
    for period in range(1, window.length):
        if chain.repeats(last - period, last, period) and (
            chain.repeats(last - 2 * period, last - period, period) or chain.repeats(last, last + period, period)
        ):
            return "after"
    for period in range(1, min(window.length, first + 1)):
        if chain.repeats(first - period, first, period) and (
            chain.repeats(first, first + period, period) or chain.repeats(first - 2 * period, first - period, period)
        ):
            return "before"
    return ""


def _is_connected(window: Window) -> bool:
    """Whether all steps of a window depend on each other."""
    groups: dict[Value, int] = {}
    joined = list(range(window.length))

    def root(group: int) -> int:
        while joined[group] != group:
            group = joined[group]
        return group

    for place, step in enumerate(window.steps):
        for operand in step.operands:
            if isinstance(operand, Value) and operand in groups:
                joined[root(groups[operand])] = root(place)
        groups.update(dict.fromkeys(step.results, place))
    return len({root(place) for place in range(window.length)}) == 1


def outside(window: Window) -> dict[Value, None]:
    """The values that a window takes, in order."""
    own = {result for step in window.steps for result in step.results}
    return dict.fromkeys(o for step in window.steps for o in step.operands if isinstance(o, Value) and o not in own)

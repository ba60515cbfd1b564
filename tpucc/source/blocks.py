"""Blocks of steps that repeat, as functions.

A *window* is some steps in a row. Windows look alike if they apply the same operators to the same results of their own steps. Numbers,
weights and what they take from outside may differ. All windows grow together, step by step, as long as one looks like another one. Of all
windows those that save the most lines become calls of one function, and then those that save the most of what is left, in the functions,
too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from tpucc.ir.attributes import identities, identity
from tpucc.ops import legalisation_of
from tpucc.ops.opdef import Boundary, Matrix
from tpucc.source.keys import Keys, scope_of, scopes, templates
from tpucc.source.steps import Body, Function, Number, Operand, Part, Step, Value, Weight, leaf_of, weights_of, wholes

LONGEST = 120
"""Steps of a window, at most."""
TRIED = 200
"""Kinds of windows that are looked at closely, those that may save the most first."""
MOST_RESULTS = 3
"""Results of a function, at most."""
MOST_INPUTS = 5
"""Tensors that a function takes, at most."""
ROW = 3
"""Calls in a row that are a loop, at least."""
CHEAP = 0.6
"""Lines of a step that stands inside the expression of another one."""
DEFINITION = 2.0
"""Lines that the head of a function takes."""
ARGUMENT = 0.3
"""Lines that a static argument of a call costs."""
LEAST = 0.5
"""Lines that a function saves, at least."""
FEWEST = 1.75
"""Lines of a function, at least."""
CUT = 0.4
"""What the lines that windows save are worth if a window has a part of a scope of names."""
SPLIT = 0.6
"""What they are worth if a window has several scopes, and for each result after the first one."""
START = 0.8
"""What they are worth if a window doesn't begin with a layer."""
INPUT = 0.85
"""What they are worth for each tensor after the first one that a window takes."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Windows that look alike and don't overlap: where they start among all steps, their length, and the lines that they save."""

    starts: tuple[int, ...]
    length: int
    saved: float


def with_functions(model: Body) -> list[Function]:
    """Puts calls of functions in the places of blocks that repeat. The functions, each behind those that it calls."""
    functions: list[Function] = []
    while (found := _Steps([model, *(function.body for function in functions)]).best()) is not None:
        functions.append(found)
    _inline_single_calls(model, functions)
    for body in (model, *(function.body for function in functions)):
        body.steps = list(_with_own_states(body.steps))
    ordered: dict[Function, None] = {}

    def add_called(body: Body) -> None:
        for step in body.steps:
            if step.function is not None and step.function not in ordered:
                add_called(step.function.body)
                ordered[step.function] = None

    add_called(model)
    return list(ordered)


def _with_own_states(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps with a first state of its own for each place of a call that takes one: the calls behind it change each on its own."""
    states = {step.results[0]: step for step in steps if not step.operands}
    taken: set[Value] = set()
    for step in steps:
        operands = list(step.operands)
        for place, operand in enumerate(operands if step.function is not None else ()):
            if isinstance(operand, Value) and operand in states:
                if operand in taken:
                    operands[place] = own = Value(operand.shapes)
                    yield replace(states[operand], results=(own,))
                taken.add(operand)
        yield replace(step, operands=tuple(operands))


def _inline_single_calls(model: Body, functions: Sequence[Function]) -> None:
    """Puts the steps of a function that one line calls in its place: nothing repeats it but the function around that line."""
    bodies = [model, *(function.body for function in functions)]
    sites = Counter(step.function for body in bodies for step in body.steps)
    for body in bodies:
        place = 0
        while place < len(body.steps):
            step = body.steps[place]
            if step.function is not None and sites[step.function] == 1:
                body.steps[place : place + 1] = _inlined(step, step.function.body)
            else:
                place += 1


def _inlined(call: Step, body: Body) -> Iterator[Step]:
    """The steps of a called body between the operands and the results of the call."""
    renamed: dict[Value, Operand] = dict(zip(body.entries, call.operands, strict=True))
    renamed.update((inner, outer) for inner, outer in zip(body.results, call.results, strict=True) if isinstance(inner, Value))
    chosen = call.environments
    for step in body.steps:
        for result in step.results:
            renamed.setdefault(result, Value(tuple(result.shapes[place] for place in chosen), result.hint))
        operands = tuple(_inner_operand(operand, renamed, chosen) for operand in step.operands)
        results = tuple(value for result in step.results if isinstance(value := renamed[result], Value))
        attributes = tuple(step.attributes[place] for place in chosen) if step.attributes else ()
        environments = tuple(step.environments[place] for place in chosen) if step.environments else ()
        yield Step(step.op, operands, results, attributes, step.function, environments)


def _inner_operand(operand: Operand, renamed: Mapping[Value, Operand], chosen: Sequence[int]) -> Operand:
    match operand:
        case Value():
            return renamed[operand]
        case Part(whole=whole, slices=slices):
            outer = _inner_operand(whole, renamed, chosen)
            assert isinstance(outer, Value | Weight)
            return Part(outer, tuple(slices[place] for place in chosen))
        case Weight(keys=keys, shapes=shapes):
            return Weight(tuple(keys[place] for place in chosen), tuple(shapes[place] for place in chosen))
        case Number(values=values):
            return Number(tuple(values[place] for place in chosen))


class _Steps:
    """The steps of all bodies, one after the other."""

    def __init__(self, bodies: Sequence[Body]) -> None:
        self.bodies = bodies
        self.steps = [step for body in bodies for step in body.steps]
        self.owners = [body for body in bodies for _ in body.steps]
        self.made = {result: (place, index) for place, step in enumerate(self.steps) for index, result in enumerate(step.results)}
        self.last: dict[Value, int] = {value: place for place, step in enumerate(self.steps) for value in wholes(step)}
        """The last place where a value is read."""
        self.last |= {result: len(self.steps) for body in bodies for result in body.results if isinstance(result, Value)}
        rows: dict[int, list[int]] = {}
        for place, step in enumerate(self.steps):
            before = [self.made[value][0] for value in wholes(step) if step.function is not None and value in self.made]
            alike = [other for other in before if self.steps[other].function is step.function]
            rows[place] = rows[alike[0]] if alike and rows[alike[0]][-1] == alike[0] else []
            rows[place].append(place)
        self.rows = {place: row for place, row in rows.items() if len(row) >= ROW}
        """For a call in a row of calls of one function, each with the result of the one before, where these are."""
        self.sources = [tuple(self._sources(place)) for place in range(len(self.steps))]
        kinds: dict[Hashable, int] = {}
        self.kinds = [kinds.setdefault(_kind(step), len(kinds)) for step in self.steps]
        self.numbers = [tuple(_numbers(step)) for step in self.steps]
        self.read = [tuple(keys_of(step)) for step in self.steps]
        """The keys of the weights that a step reads."""
        readers = Counter(key for keys in self.read for key in keys)
        self.keys = [frozenset(key for key in keys if readers[key] == 1) for keys in self.read]
        """The keys of the weights that a step alone reads: others say nothing about blocks."""
        self.under: dict[str, set[str]] = defaultdict(set)
        """The keys of each scope."""
        for key in frozenset[str]().union(*self.keys):
            for scope in scopes(key):
                self.under[scope].add(key)
        self.costs = [0.0]
        """The lines of all steps before each place."""
        for step in self.steps:
            self.costs.append(self.costs[-1] + _cost(step))

    def best(self) -> Function | None:
        """Makes a function of the windows that save the most lines; None if none save any."""
        best: Repeat | None = None
        found = sorted(self._repeats(), key=lambda repeat: -repeat.saved)
        for repeat in found[:TRIED]:
            if best is not None and repeat.saved <= best.saved:
                break
            for windows in (repeat, self._whole(repeat)):
                saved = self._saved(windows) if len(windows.starts) > 1 else 0
                if saved > (best.saved if best is not None else LEAST):
                    best = Repeat(windows.starts, windows.length, saved)
        return self._replaced(best) if best is not None else None

    def _repeats(self) -> Iterator[Repeat]:
        """Windows that look alike, with the lines that they save at most."""
        alive: dict[int, int] = dict.fromkeys(range(len(self.steps)), -1)
        """For each start what the window of this length looks like, as a number."""
        for length in range(1, LONGEST + 1):
            looks: dict[Hashable, list[int]] = defaultdict(list)
            for start, number in alive.items():
                place = start + length - 1
                if place < len(self.steps) and self.owners[place] is self.owners[start]:
                    references = tuple([inner if made >= start else outer for made, inner, outer in self.sources[place]])
                    looks[number, self.kinds[place], references].append(start)
            alive = {}
            for number, starts in enumerate(looks.values()):
                is_run = length % 2 == 0 and starts[0] + length // 2 in starts  # each window is two rounds of a shorter one
                if is_run or starts[-1] - starts[0] < length:
                    continue
                alive |= dict.fromkeys(starts, number)
                chosen = _apart(starts, length)
                lines = self.costs[chosen[0] + length] - self.costs[chosen[0]]
                saved = (len(chosen) - 1) * lines - DEFINITION
                if length > 1 and lines >= FEWEST and saved > 0:
                    yield Repeat(chosen, length, saved)
            if not alive:
                break

    def _sources(self, place: int) -> Iterator[tuple[int, Hashable, Hashable]]:
        """For each operand of a step where its value is made, and what it is to a window that the step there belongs to, and to another."""
        for operand in self.steps[place].operands:
            whole, rank = leaf_of(operand), len(operand.shapes[0])
            made, index = self.made.get(whole, (-1, 0)) if isinstance(whole, Value) else (-1, 0)
            yield made, (place - made, index, isinstance(operand, Part), rank), (isinstance(whole, Value), rank)

    def _saved(self, repeat: Repeat) -> float:
        """The lines that a function for these windows saves; 0 if it can't be one."""
        results, count = self._results(repeat), len(repeat.starts)
        inputs = self._inputs(repeat)
        if not 1 <= len(results) <= MOST_RESULTS or len(inputs) > MOST_INPUTS or self._cuts_a_row(repeat):
            return 0
        begins = self.steps[repeat.starts[0]]
        is_layer = begins.function is not None or any(weights_of(begins))
        saved = repeat.saved - ARGUMENT * count * self._varying(repeat)
        return saved * SPLIT ** (len(results) - 1) * INPUT ** (len(inputs) - 1) * (1 if is_layer else START) * self._fit(repeat)

    def _results(self, repeat: Repeat) -> tuple[tuple[int, int], ...]:
        """The results of the windows' steps that are read behind a window, by the places of their steps in it."""
        return tuple(
            (place, index)
            for place in range(repeat.length)
            for index in range(len(self.steps[repeat.starts[0] + place].results))
            if any(self.last.get(self.steps[s + place].results[index], -1) >= s + repeat.length for s in repeat.starts)
        )

    def _inputs(self, repeat: Repeat) -> list[tuple[Value | Part, ...]]:
        """The tensors that the windows take from outside: for each the operands of all windows in the same place."""
        found: dict[tuple[Value | Part, ...], None] = {}
        for place in range(repeat.length):
            for operands in zip(*(self.steps[start + place].operands for start in repeat.starts), strict=True):
                first = leaf_of(operands[0])
                if isinstance(first, Value) and self.made.get(first, (-1, 0))[0] < repeat.starts[0]:
                    found[tuple(operand for operand in operands if isinstance(operand, Value | Part))] = None
        return list(found)

    def _varying(self, repeat: Repeat) -> int:
        """How many numbers and names differ from window to window, each series of them once."""
        found: set[Hashable] = set()
        keys: list[Keys] = []
        for place in range(repeat.length):
            places = [start + place for start in repeat.starts]
            found.update(values for values in zip(*(self.numbers[each] for each in places), strict=True) if len(set(values)) > 1)
            keys += zip(*(self.read[each] for each in places), strict=True)
        return len(found) + max(0, len({names for names, _ in templates(keys).values()}) - 1)

    def _cuts_a_row(self, repeat: Repeat) -> bool:
        """Whether a window begins or ends among calls in a row, which are a loop."""
        windows = [range(start, start + repeat.length) for start in repeat.starts]
        return any(not window[0] <= other <= window[-1] for window in windows for place in window for other in self.rows.get(place, ()))

    def _whole(self, repeat: Repeat) -> Repeat:
        """Those windows that have all weights of a scope, as of `encoder.layers.0`."""
        starts = tuple(start for start in repeat.starts if self._is_whole(self._own_keys(start, repeat.length)))
        lines = self.costs[repeat.starts[0] + repeat.length] - self.costs[repeat.starts[0]]
        return Repeat(starts, repeat.length, (len(starts) - 1) * lines - DEFINITION)

    def _own_keys(self, start: int, length: int) -> frozenset[str]:
        return frozenset[str]().union(*self.keys[start : start + length])

    def _fit(self, repeat: Repeat) -> float:
        """How well windows fit the names of their weights: best, if each has all weights of a scope; worst, if one cuts a scope."""
        keys = [self._own_keys(start, repeat.length) for start in repeat.starts]
        if all(map(self._is_whole, keys)):
            return 1
        cut = any(not (self.under[scope] <= own or own < self.under[scope]) for own in keys for key in own for scope in scopes(key))
        return CUT if cut else SPLIT

    def _is_whole(self, keys: frozenset[str]) -> bool:
        return not keys or self.under[scope_of(keys)] == keys

    def _replaced(self, repeat: Repeat) -> Function:
        """Puts calls of a new function in the places of the windows."""
        results = self._results(repeat)
        windows = [self.steps[start : start + repeat.length] for start in repeat.starts]
        owners = [self.owners[start] for start in repeat.starts]
        inputs = {operands: _merged_value(operands) for operands in self._inputs(repeat)}
        function = Function(Body(tuple(sample for owner in owners for sample in owner.samples), tuple(inputs.values())))
        renamed: dict[tuple[Operand, ...], Value] = {}
        renamed.update(inputs.items())
        for steps in zip(*windows, strict=True):
            step = _merged_step(steps, renamed)
            renamed.update(zip(zip(*(each.results for each in steps), strict=True), step.results, strict=True))
            function.body.steps.append(step)
        function.body.results = tuple(function.body.steps[place].results[index] for place, index in results)
        calls: dict[int, Step] = {}
        end = 0
        for number, (window, owner) in enumerate(zip(windows, owners, strict=True)):
            first, end = end, end + len(owner.samples)
            given = tuple(window[place].results[index] for place, index in results)
            calls[id(window[0])] = Step("", tuple(same[number] for same in inputs), given, (), function, tuple(range(first, end)))
        dropped = {id(step) for window in windows for step in window}
        for owner in dict.fromkeys(owners):
            owner.steps = [calls.get(id(step), step) for step in owner.steps if id(step) in calls or id(step) not in dropped]
        return function


def _apart(starts: Sequence[int], length: int) -> tuple[int, ...]:
    """Starts of windows that don't overlap."""
    chosen = [starts[0]]
    for start in starts:
        if start - chosen[-1] >= length:
            chosen.append(start)
    return tuple(chosen)


# making a function


def _merged_step(steps: Sequence[Step], renamed: Mapping[tuple[Operand, ...], Value]) -> Step:
    return Step(
        steps[0].op,
        tuple(_merged_operand(same, renamed) for same in zip(*(step.operands for step in steps), strict=True)),
        tuple(_merged_value(same) for same in zip(*(step.results for step in steps), strict=True)),
        tuple(each for step in steps for each in step.attributes),
        steps[0].function,
        tuple(each for step in steps for each in step.environments),
    )


def _merged_value(values: Sequence[Value | Part]) -> Value:
    """The value of a function: its name is the one that most of the values have that it stands for."""
    hint, times = Counter(value.hint if isinstance(value, Value) else "" for value in values).most_common(1)[0]
    return Value(tuple(shape for value in values for shape in value.shapes), hint if 2 * times > len(values) else "")


def _merged_operand(operands: tuple[Operand, ...], renamed: Mapping[tuple[Operand, ...], Value]) -> Operand:
    if operands in renamed:
        return renamed[operands]
    match operands[0]:
        case Weight():
            weights = [operand for operand in operands if isinstance(operand, Weight)]
            return Weight(tuple(key for each in weights for key in each.keys), tuple(shape for each in weights for shape in each.shapes))
        case Number():
            return Number(tuple(value for operand in operands if isinstance(operand, Number) for value in operand.values))
        case _:
            parts = [operand for operand in operands if isinstance(operand, Part)]
            whole = _merged_operand(tuple(part.whole for part in parts), renamed)
            assert isinstance(whole, Value | Weight)
            return Part(whole, tuple(each for part in parts for each in part.slices))


# what a step is


def _kind(step: Step) -> Hashable:
    """What steps have in common for which one line of a function may stand."""
    constants = tuple((type(each), type(leaf_of(each))) if isinstance(leaf_of(each), Weight | Number) else None for each in step.operands)
    ranks = tuple(len(result.shapes[0]) for result in step.results)
    forms = tuple(_form(getattr(step.attributes[0], field.name)) for field in fields(step.attributes[0])) if step.attributes else ()
    return step.function or step.op, constants, ranks, forms


def _form(value: object) -> Hashable:
    """What values of an attribute have in common that may differ from call to call: numbers and words may."""
    if isinstance(value, tuple) and all(type(each) is int for each in value):
        return int
    return int if type(value) in (int, str) else float if type(value) is float else identity(value)


def _cost(step: Step) -> float:
    """About how many lines a step takes, with the declarations of its weights."""
    own = step.function is not None or isinstance(legalisation_of(step.op), Matrix | Boundary)
    return (1 if own else CHEAP) + len(list(weights_of(step)))


def _numbers(step: Step, environment: int = 0) -> Iterator[Hashable]:
    """The numbers that a step is given, and those within the function that it calls, in order."""
    for attributes in step.attributes[environment : environment + 1]:
        yield from identities(attributes)
    yield from (operand.values[environment] for operand in step.operands if isinstance(operand, Number))
    for inner in step.function.body.steps if step.function is not None else ():
        yield from _numbers(inner, step.environments[environment])


def keys_of(step: Step, environment: int = 0) -> Iterator[str]:
    """The keys of the weights that a step reads, and of those within the function that it calls."""
    yield from (weight.keys[environment] for weight in weights_of(step))
    for inner in step.function.body.steps if step.function is not None else ():
        yield from keys_of(inner, step.environments[environment])

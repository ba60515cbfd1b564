"""Open sizes of a file that are one: its network takes them only with one value, as where it adds [batch, s] and [batch, t]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tpucc.diagnostics import Error, listed
from tpucc.interop.onnx.reading import Imported, as_given
from tpucc.interop.onnx.reading.files.names import BATCH
from tpucc.interop.onnx.reading.network_of import WITH_SIZES, Built

MOST = 6
"""Open sizes of which each choice is tried."""
TRIED = (64, 96, 1000)
"""Values of sizes that aren't given, to see whether an error is due to them."""


def other_sizes(size: int) -> tuple[tuple[int, int], ...]:
    """Pairs of values to try in the place of a size: about twice the size, and about half, for a network that takes no larger one.

    What follows from a size by a stride is then another number, too. The second value of a pair is a multiple of the size, or a half of it,
    and the first is one less: a quotient that is right for both is rounded as the network rounds it.
    """
    half = size // 2
    larger = (max(2 * size - 1, 3), 2 * size)
    return (larger, (half - 1, half)) if half > 2 else (larger,)


def built_with_ties(found: Imported, given: Mapping[str, int]) -> tuple[Imported, Built]:
    """The graph for these sizes. A size that isn't given, and that the network takes only with a given value, is tied to that one.

    Raises as `Imported.built`; where the network takes two given sizes only with one value, the help names both.
    """
    found = _with_missing_tied(found, given)
    _require_that_missing_ones_may_fit(found, given)
    sizes = found.sizes(given)
    try:
        return found, found.built(sizes)
    except Error as error:
        own = [found.names.called[name] for name in given]
        said = {found.ties.get(name, name) for name in own}
        is_other = any(problem.code == "E1006" for problem in error.diagnostics)  # that no size mends
        for first, second in () if is_other else _unequal(sizes, said):
            if not _follows(found, {**sizes, second: sizes[first]}, second):
                continue
            if second not in said:
                is_batch = second == BATCH or (second in found.batches and first not in found.batches)
                tie = {first: second} if is_batch else {second: first}
                return built_with_ties(found.tied(tie), given)
            values = f"{first} is {sizes[first]:,} and {second} is {sizes[second]:,}"
            equal = as_given({first: sizes[first], second: sizes[first]})
            help = f"{values}, and the network can be read where they are equal: {equal}"
            problem = error.diagnostics[0]
            raise type(error)([replace(problem, help=(*problem.help, help)), *error.diagnostics[1:]], error.source) from None
        if is_other or found.batch == 1 or found.batches <= said:
            raise
        try:  # a network may take one item only
            return built_with_ties(replace(found, batch=1), given)
        except Error:
            raise error from None


def _with_missing_tied(found: Imported, given: Mapping[str, int]) -> Imported:
    """The file with a tie for each size that isn't given, and that the network takes only with the value of one that is, or of the batch,
    whatever that is."""
    sizes = found.known_sizes(given)
    missing = [name for name, size in sizes.items() if size is None]
    own = [found.ties.get(name, name) for name in (found.names.called[name] for name in given)]
    for first in dict.fromkeys([*own, *found.batches]) if missing else ():
        equal = {name: size or sizes[first] or 0 for name, size in sizes.items()}
        is_open = first in own or _works(found, {**equal, **{name: 2 * equal[name] for name in (first, *missing)}})
        if ties := {name: first for name in missing if is_open and _follows(found, equal, name)}:
            return found.tied(ties)
    return found


def _require_that_missing_ones_may_fit(found: Imported, given: Mapping[str, int]) -> None:
    """Raises the error that the network has whatever those sizes are that aren't given: nobody needs to say them then."""
    known, error, said = found.known_sizes(given), None, list[str]()
    for tried in TRIED if None in known.values() else ():
        error = _error(found, {name: size or tried + place for place, (name, size) in enumerate(known.items())})
        texts = [problem.message.partition(WITH_SIZES)[0] for problem in error.diagnostics] if error is not None else []
        if error is None or said not in ([], texts):
            return
        said = texts
    if error is not None and found.batch != 1:  # a network may take one item only
        _require_that_missing_ones_may_fit(replace(found, batch=1), given)
    if error is None or found.batch != 1:
        return
    values = {**found.numbers, **{name: size for name, size in known.items() if size is not None}}
    shown = listed([f"{name} = {size:,}" for name, size in values.items()])
    problems = [
        replace(problem, message=f"{text}{WITH_SIZES}{shown}" if WITH_SIZES in problem.message else text)
        for problem, text in zip(error.diagnostics, said, strict=True)
    ]
    raise type(error)(problems, error.source)


def _follows(found: Imported, sizes: Mapping[str, int | None], name: str) -> bool:
    """Whether the network takes these sizes, and not another value for this one."""
    known = {other: size for other, size in sizes.items() if size is not None}
    return _works(found, known) and working_pair(found, known, name) is None


def working_pair(found: Imported, sizes: Mapping[str, int], name: str) -> tuple[int, int] | None:
    """The first two other values of a size of which the network takes one, while all other sizes stay; None where it takes none."""
    return next((pair for pair in other_sizes(sizes[name]) if _works(found, {**sizes, name: pair[0]})), None)


def _unequal(sizes: Mapping[str, int], said: set[str]) -> Iterator[tuple[str, str]]:
    """Pairs of sizes of different values, of which the first is given."""
    for first in sizes if len(sizes) <= MOST else ():
        yield from ((first, second) for second in sizes if first in said and sizes[second] != sizes[first])


def with_ties(found: Imported, sizes: Mapping[str, int]) -> tuple[Imported, list[str]]:
    """The file with a tie for each size that can change only together with equal ones; and the sizes that can change then."""
    apart = {name: 2 * size + place for place, (name, size) in enumerate(sizes.items())}
    if not 1 < len(sizes) <= MOST or _works(found, apart):
        return found, list(sizes)
    still = [name for name in sizes if working_pair(found, sizes, name) is None]
    ties: dict[str, str] = {}
    for name in still:
        equal = [other for other in still if sizes[other] == sizes[name] and other not in ties]
        pairs = other_sizes(sizes[name]) if equal[:1] == [name] != equal else ()
        if any(all(_works(found, {**sizes, **dict.fromkeys(equal, value)}) for value in pair) for pair in pairs):
            ties |= dict.fromkeys(equal[1:], name)
    return found.tied(ties), [name for name in sizes if name not in ties and (name in ties.values() or name not in still)]


def _works(found: Imported, sizes: Mapping[str, int]) -> bool:
    return _error(found, sizes) is None


def _error(found: Imported, sizes: Mapping[str, int]) -> Error | None:
    """Why the network can't be read with these sizes; None where it can."""
    try:
        found.built(sizes)
    except Error as error:
        return error
    return None

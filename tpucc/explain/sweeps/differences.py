"""What two sweeps differ in, in words: the one whose points a file has, and the one that is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tpucc.diagnostics import counted, printable

FEW = 5
"""Differences, and things of one kind, that a message names."""
SHOWN = 40
"""Characters of one of them."""


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """The differences of two identities (`Plan.identity`), "it" the one that is there and "this one" the one that is asked for. Empty
    where both are of the same points in the same order."""
    found = list(_differences(there, here))
    more = [f"and {counted(len(found) - FEW, 'more difference')}"] if len(found) > FEW else []
    return "; ".join([*found[:FEW], *more])


def _differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> Iterator[str]:
    if there["tpucc"] != here["tpucc"]:
        yield f"it was made by tpucc {_shown(there['tpucc'])}, not {here['tpucc']}"
    yield from _apart("model", list(there["models"]), list(here["models"]))
    for model, digest in here["models"].items():
        if there["models"].get(model, digest) != digest:
            yield f"{printable(model)} or a file that it names has changed"
    yield from _options(there["options"], here["options"])
    yield from _apart("axis", list(there["axes"]), list(here["axes"]), "axes")
    for axis, values in here["axes"].items():
        yield from _values(axis, there["axes"].get(axis, values), values)


def _apart(what: str, there: Sequence[str], here: Sequence[str], plural: str = "") -> Iterator[str]:
    """Names of models, options or axes that only one side has, or that have another order."""
    sides = _alone(there, here)
    for owner, only in sides:
        yield f"only {owner} has the {what if len(only) == 1 else plural or what + 's'} {_named(only)}"
    if not sides and list(there) != list(here):
        yield f"its {plural or what + 's'} are in another order"


def _options(there: Sequence[str], here: Sequence[str]) -> Iterator[str]:
    """The last item is the digest of the files that options name."""
    found = list(_apart("option", _whole(there[:-1]), _whole(here[:-1])))
    yield from found
    if not found and there[-1:] != here[-1:]:
        yield "a file that an option names has changed"


def _values(axis: str, there: Sequence[str], here: Sequence[str]) -> Iterator[str]:
    sides = [f"only {owner} has {_named(only)}" for owner, only in _alone(there, here)]
    if sides:
        yield f"of the values of {_shown(axis)}, {', and '.join(sides)}"
    elif there != here:
        yield f"its values of {_shown(axis)} are in another order"


def _whole(words: Sequence[str]) -> list[str]:
    """Options with their values, as in `--activation-bits 16`."""
    found = list[str]()
    for word in words:
        if word.startswith("-") or not found:
            found.append(word)
        else:
            found[-1] += f" {word}"
    return found


def _alone(there: Sequence[str], here: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Who has items that the other one hasn't, and these."""
    sides = (("it", Counter(there) - Counter(here)), ("this one", Counter(here) - Counter(there)))
    return [(owner, list(only.elements())) for owner, only in sides if only]


def _named(items: Sequence[str]) -> str:
    more = [f"{len(items) - FEW:,} more"] if len(items) > FEW else []
    *most, last = [*map(_shown, items[:FEW]), *more]
    return f"{', '.join(most)} and {last}" if most else last


def _shown(text: str) -> str:
    """A text whose middle is left out where it is long."""
    plain, half = printable(text), SHOWN // 2
    return plain if len(plain) <= SHOWN else f"{plain[:half]}…{plain[-half:]}"

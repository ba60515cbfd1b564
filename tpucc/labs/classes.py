"""Grading a class: every submission of a folder, some at a time, into one table; what was graded already is not graded again."""

from __future__ import annotations

import csv
import io
import json
import os
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tpucc.diagnostics import printable
from tpucc.files import read_file
from tpucc.guest.jails import Jail
from tpucc.guest.leftover_files import Left
from tpucc.labs.grading import KEPT_DIGITS, Contents, contents_of, workshop_of
from tpucc.labs.lab import Lab
from tpucc.labs.submissions import Variants, submissions
from tpucc.labs.workers import Graders, Results, ungraded
from tpucc.output_files import write_file
from tpucc.version import VERSION

SEED = "TPUCC_SEED"
"""The environment's variable with a grader's seed: every user can read the words of a command, and only its own the environment."""
LONGEST_NAME = 200
"""Bytes of a submission's name, above which its results get another."""
WHY, CELL = 200, 5000
"""Characters of a reason in the table, and of a cell: spreadsheets take 32,767."""


@dataclass(frozen=True, slots=True)
class Row:
    """One submission's line: its results as `results.json` has them, or why there are none."""

    name: str
    results: dict[str, Any]

    @property
    def note(self) -> str:
        """What the submission's own file says of another lab or term."""
        return str(self.results.get("extra_data", {}).get("note", ""))

    @property
    def problem(self) -> str:
        """What stood in the way: of the whole submission, or of every test in the same words."""
        if whole := str(self.results.get("output", "")).removesuffix(self.note).strip():
            return whole
        said = {first_line(str(test.get("output", ""))) for test in self.results.get("tests", ())}
        return said.pop() if len(said) == 1 and not self.results.get("score") else ""

    @property
    def why(self) -> str:
        """For each test that lost points, its name and the first line of what it found, those of hidden tests too. Tests of one reason
        stand together. Nothing where that is one for all tests: `problem` says it."""
        tests = self.results.get("tests", ())
        reasons: dict[str, list[str]] = {}
        for test in tests:
            if test["status"] != "passed":
                reasons.setdefault(first_line(str(test["output"])), []).append(str(test["name"]))
        if any(len(names) == len(tests) for names in reasons.values()):
            return ""
        told = (f"{', '.join(names)}: {said if len(said) <= WHY else f'{said[: WHY - 1]}…'}" for said, names in reasons.items())
        return " | ".join(map(printable, told))


def grade_all(
    variants: Variants,
    folder: Path,
    seed: int,
    into: Path,
    jail: Jail,
    jobs: int = 1,
    told: Callable[[Row], None] = lambda _: None,
    begun: Callable[[str], None] = lambda _: None,
) -> list[Row]:
    """The rows of all submissions in `folder`, in the order of their names. The results of each are a file in `into`, from which a second
    run goes on: only what is new, changed, or was graded by another seed, another version of tpucc or in another isolation is graded.

    `jobs` processes grade. `begun` hears the name of each submission that is given to one, in any thread.
    Raises `Left` where a submission left what the next one could read.
    """
    variants.lab.require()
    into.mkdir(mode=0o700, parents=True, exist_ok=True)
    lab, paths, rows = variants.lab, submissions(folder, variants.lab), dict[int, Row]()
    keys: dict[int, dict[str, Any]] = {}

    def done(number: int, results: Results) -> None:
        rows[number] = Row(paths[number].name, results)
        told(rows[number])

    def given(number: int) -> Contents:
        begun(paths[number].name)
        return contents_of(lab, paths[number], variants.of(paths[number]))

    for number, path in enumerate(paths):
        if path.is_symlink():
            done(number, ungraded("it is a link; a submission is made of regular files"))
            continue
        found = contents_of(lab, path, variants.of(path))
        keys[number] = {"lab": lab.number, "seed": seed, "version": VERSION, "term": found.term.name, "isolation": jail.name}
        kept = _read(_file(path, into))
        same = {**keys[number], "digest": found.digest, "note": found.note}
        if kept and found.digest and all(kept["extra_data"].get(name) == value for name, value in same.items()):
            done(number, kept)
    left = [number for number in range(len(paths)) if number not in rows]
    with workshop_of(lab) if left else nullcontext() as shared, closing(Graders(lab.number, seed, jail, jobs, shared)) as graders:
        for number, results in graders.results(left, given):
            if "left" in results:
                raise Left(f"{printable(paths[number].name)}: {results['left']}")
            results["extra_data"] = {**results["extra_data"], **keys[number]}
            write_file(_file(paths[number], into), (json.dumps(results, indent=1) + "\n").encode())
            done(number, results)
    return [rows[number] for number in range(len(paths))]


def earlier_seed(into: Path, lab: Lab, names: Collection[str]) -> int | None:
    """The seed of the results that are in a folder, if they are this lab's and of one of these terms: a second run goes on with it."""
    for path in sorted(into.glob("*.json")):
        more = (_read(path) or {}).get("extra_data", {})
        if more.get("lab") == lab.number and more.get("term") in names and isinstance(more.get("seed"), int):
            return int(more["seed"])
    return None


def _read(file: Path) -> Results | None:
    """The results in a file that are whole."""
    try:
        told: Results = json.loads(read_file(file))
        return told if told["extra_data"]["complete"] else None
    except Exception:
        return None


def _file(path: Path, into: Path) -> Path:
    """The file of a submission's results: by its name, where another file may have that."""
    name = path.name
    if not name.isprintable() or len(os.fsencode(name)) > LONGEST_NAME:
        name = f"{printable(name)[:40]}-{sha256(os.fsencode(name)).hexdigest()[:16]}"
    return into / f"{name}.json"


def as_csv(rows: Sequence[Row]) -> str:
    """A line a submission: name, score, the points of each test, its term and seed, the submission's hash, what stood in the way, why
    tests lost points, what its own file says of another term, and what of tpucc's own it is like."""
    names = list(dict.fromkeys(test["name"] for row in rows for test in row.results.get("tests", ())))
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)  # some spreadsheets split at semicolons, too
    table.writerow(["name", "score", "of", *names, "term", "seed", "submission", "problem", "why", "note", "like"])
    table.writerows(_cells(row, names) for row in rows)
    return stream.getvalue()


def _cells(row: Row, names: Sequence[str]) -> Iterator[object]:
    points = {test["name"]: test["score"] for test in row.results.get("tests", ())}
    yield from (_harmless(printable(row.name)), row.results.get("score", 0), row.results.get("max_score", 0))
    yield from (points.get(name, "") for name in names)
    more = row.results.get("extra_data", {})
    yield from (
        _harmless(printable(str(more.get("term", "")))),
        _kept(more.get("seed", "")),
        _harmless(printable(str(more.get("digest", "")))),
        _harmless(printable(first_line(row.problem))),
        _harmless(row.why),
        _harmless(printable(first_line(row.note))),
        _harmless("; ".join(map(str, more.get("like", ())))),
    )


def _kept(seed: object) -> object:
    """A seed that a spreadsheet leaves as it is: with more digits than it keeps, as a text."""
    return f"'{seed}" if len(str(seed)) > KEPT_DIGITS else seed


def first_line(text: str) -> str:
    """What a table has of a problem."""
    return text.partition("\n")[0]


def _harmless(text: str) -> str:
    """Text that a spreadsheet takes for no formula, whatever spaces it begins with and however wide its first sign is; what is too long is
    cut."""
    first = unicodedata.normalize("NFKC", text.lstrip()[:1])
    shown = text if len(text) <= CELL else f"{text[: CELL - 1]}…"
    return f"'{shown}" if first in ("=", "+", "-", "@", "\N{MINUS SIGN}") or text[:1] in ("\t", "\r") else shown

"""What solutions of labs earn: the skeleton, half of the work, wrong solutions, the reference.

Half of the work is the reference's in all but one function, where it is the skeleton's; of a lab of texts, every second file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.lab_results import SEED, Here, all_tests, submitted
from tests.support.lab_solutions import files_of, mistakes, reference
from tpucc.labs.grading import run
from tpucc.labs.lab import Lab, Term

SKELETON, REFERENCE = "the skeleton", "the reference"


@dataclass(frozen=True, slots=True)
class Marks:
    """The points of a solution: of public tests, and of all. `fault` is what a wrong one gets wrong, as its file says."""

    solution: str
    public: float
    whole: float
    fault: str = ""


def marks(lab: Lab, term: Term) -> Iterator[Marks]:
    """The marks of all solutions of a lab."""
    whole, skeleton = files_of(lab, reference(lab)), lab.files(term)
    yield _marked(lab, term, SKELETON, submitted(lab, skeleton, term))
    for name, half in halves(lab, term):
        yield _marked(lab, term, name, half)
    for path in mistakes(lab):
        files = files_of(lab, path)
        text = path.read_text("utf-8") if path.is_file() else next(iter(files.values()))
        yield _marked(lab, term, path.stem.replace("_", " "), submitted(lab, files, term), text.strip().splitlines()[0].strip('"'))
    yield _marked(lab, term, REFERENCE, submitted(lab, whole, term))


def halves(lab: Lab, term: Term) -> Iterator[tuple[str, Here]]:
    """Half of the work, in each way."""
    whole, skeleton = files_of(lab, reference(lab)), lab.files(term)
    if not lab.functions:
        names = sorted(whole)[::2]
        yield "every second file", submitted(lab, {**whole, **{name: skeleton[name] for name in names}}, term)
    elif len(lab.functions) > 1 and not lab.open:
        begun = submitted(lab, skeleton, term)
        for function in lab.functions:
            done = submitted(lab, whole, term)
            done.replace(function, begun)
            yield f"without {function}", done


def _marked(lab: Lab, term: Term, name: str, submission: Here, fault: str = "") -> Marks:
    found = [run(test, submission, SEED) for test in all_tests(lab, term)]
    public = sum(result.score for result in found if not result.test.hidden)
    return Marks(name, public, sum(result.score for result in found), fault)

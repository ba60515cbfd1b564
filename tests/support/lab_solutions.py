"""The solutions of labs: the reference and wrong ones, as the tests take them and as a student would hand them in.

    python -m tests.support.lab_solutions 5 always_one_more --term 2027-spring -o lab5

writes a wrong solution of lab 5, and without its name the reference.

A wrong solution is a patch against the reference (`always_one_more.diff`), or a whole file where it goes another way (`as_given.py`). Both
begin with the sentence that names the test which it fails.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from tpucc.labs import find
from tpucc.labs.lab import AS_WRITTEN, Lab, Term

SUBMISSIONS = Path(__file__).parents[1] / "labs" / "submissions"
"""Of each lab, its wrong solutions (`wrong`), and submissions that try to fool a careless test (`exploits`)."""
HUNK = re.compile(r"^@@ -(?P<line>\d+)\S* \+\S+ @@.*\n", re.MULTILINE)


def files_of(lab: Lab, path: Path) -> dict[str, str]:
    """The files of a solution: a folder, the lab's main file, one text for each of a lab's files, or the reference's files with a patch."""
    if path.is_dir():
        return {file.name: file.read_text("utf-8") for file in sorted(path.iterdir())}
    if path.suffix == ".py":
        return {lab.file: path.read_text("utf-8")}
    if path.suffix != ".diff":
        return dict.fromkeys(lab.files(AS_WRITTEN), path.read_text("utf-8"))
    whole = files_of(lab, reference(lab))
    diff = path.read_text("utf-8")
    name = re.findall(r"^\+\+\+ (\S+)", diff, re.MULTILINE)[0]
    patched_name = lab.file if lab.functions else name
    return whole | {patched_name: patched(whole[patched_name], diff)}


def patched(text: str, diff: str) -> str:
    """A text with the hunks of a unified diff: each where its old lines stand, the nearest such place to the line that it names."""
    lines, moved = text.splitlines(keepends=True), 0
    _, *parts = HUNK.split(diff)
    for line, body in zip(parts[::2], parts[1::2], strict=True):
        rows = body.splitlines(keepends=True)
        old, new = ([row[1:] for row in rows if row[0] in marks] for marks in (" -", " +"))
        places = [place for place in range(len(lines)) if lines[place : place + len(old)] == old]
        assert places, f"these lines of a patch aren't there any more:\n{''.join(old)}"
        place = min(places, key=lambda place: abs(place - (int(line) - 1 + moved)))
        lines[place : place + len(old)] = new
        moved += len(new) - len(old)
    return "".join(lines)


def reference(lab: Lab) -> Path:
    """The reference solution: a file or a folder."""
    return lab.material_folder / ("reference.py" if lab.functions else "reference")


def mistakes(lab: Lab) -> list[Path]:
    """The wrong solutions."""
    return sorted((SUBMISSIONS / lab.name / "wrong").iterdir())


def exploits(lab: Lab) -> list[Path]:
    """Submissions that try to fool a careless test; or the files of the only one, which have the names of a lab's files."""
    return sorted(path for path in (SUBMISSIONS / lab.name / "exploits").iterdir() if path.is_file())


def jailed(lab: Lab) -> list[Path]:
    """Submissions that call what tpucc itself has, to be run as children."""
    return sorted((SUBMISSIONS / lab.name / "exploits" / "jailed").glob("*.py"))


def handed_in(lab: Lab, wrong: str, term: Term) -> dict[str, str]:
    """The files of a solution with the term's words: of the reference, or of a wrong one by its name."""
    found = {path.stem: path for path in mistakes(lab)}
    if wrong and wrong not in found:
        raise click.UsageError(f"lab {lab.number} has no wrong solution {wrong}: {', '.join(found)}")
    return {name: lab.filled(text, term) for name, text in files_of(lab, found[wrong] if wrong else reference(lab)).items()}


def main_file(lab: Lab, wrong: str = "", term: Term = AS_WRITTEN) -> str:
    """The text of the reference's main file, or of a wrong solution's, with the term's words."""
    return handed_in(lab, wrong, term)[lab.file]


@click.command()
@click.argument("lab")
@click.argument("wrong", default="")
@click.option("--term", default="", metavar="TERM", help="The term whose numbers it has (default: as written).")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where to write its files.")
def command(lab: str, wrong: str, term: str, output: Path) -> None:
    """Write a solution of LAB: the one named WRONG, or the reference."""
    output.mkdir(parents=True, exist_ok=True)
    for name, text in handed_in(find(lab), wrong, Term(term) if term else AS_WRITTEN).items():
        (output / name).write_text(text, "utf-8")
        click.echo(output / name)


if __name__ == "__main__":
    command()

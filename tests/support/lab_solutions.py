"""The solutions of labs: the reference and wrong ones, as the tests take them and as a student would hand them in.

    python -m tests.support.lab_solutions 5 always_one_more --term 2027-spring -o lab5

writes a wrong solution of lab 5, and without its name the reference.
"""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.labs import find
from tpucc.labs.lab import AS_WRITTEN, Lab, Term

SOLUTIONS = Path(__file__).resolve().parents[1] / "labs" / "solutions"


def files_of(lab: Lab, path: Path) -> dict[str, str]:
    """The files of a solution: a folder; the lab's main file; what follows the reference's text (`and_why.py`), where it replaces
    functions; or a file in the place of one of the reference's (`puzzle03_why.asm`)."""
    if path.is_dir():
        return {file.name: file.read_text("utf-8") for file in sorted(path.iterdir())}
    if path.suffix == ".py":
        before = reference(lab).read_text("utf-8") if path.stem.startswith("and_") else ""
        return {lab.file: before + path.read_text("utf-8")}
    return files_of(lab, reference(lab)) | {f"{path.stem.split('_')[0]}{path.suffix}": path.read_text("utf-8")}


def reference(lab: Lab) -> Path:
    """The reference solution: a file or a folder."""
    return SOLUTIONS / lab.name / ("reference.py" if lab.functions else "reference")


def handed_in(lab: Lab, wrong: str, term: Term) -> dict[str, str]:
    """The files of a solution with the term's words: of the reference, or of a wrong one by its name."""
    if not wrong:
        return {name: lab.filled(text, term) for name, text in files_of(lab, reference(lab)).items()}
    found = {path.stem: path for path in sorted((SOLUTIONS / lab.name / "wrong").iterdir())}
    if wrong not in found:
        raise click.UsageError(f"lab {lab.number} has no wrong solution {wrong}: {', '.join(found)}")
    return {name: lab.filled(text, term) for name, text in files_of(lab, found[wrong]).items()}


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

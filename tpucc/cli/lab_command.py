"""`tpucc lab`: coursework."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from tpucc.cli.columns import described, filled
from tpucc.cli.lab_grading import grade_lab, oral, warn_of_small
from tpucc.cli.lab_mine import mine
from tpucc.cli.lab_shared import end, follow, heading, lab_and_term, lab_option, only_option, term_name, term_option, write_pictures
from tpucc.cli.messages import say, tell
from tpucc.cli.options import FILE
from tpucc.cli.places import keep_inputs
from tpucc.diagnostics import Diagnostic, UsageError, counted, listed, printable
from tpucc.files import read_file
from tpucc.labs import find, labs, puzzle
from tpucc.labs.child import BUDGET
from tpucc.labs.grading import check, random_seed
from tpucc.labs.lab import Lab, Term
from tpucc.labs.start import differing, place, start
from tpucc.labs.submissions import FILE as LAB_FILE
from tpucc.labs.submissions import Variants, key_of
from tpucc.output_files import write_file, write_files

LEFT_OUT = 5
"""Files without a place on the board that are named."""
NAMED = 3
"""Files that differ between two terms that are named."""
LISTED = 60
"""Lines of what was taken and left out that are printed."""


@click.group("lab")
def command() -> None:
    """Coursework: begin a lab, check it, grade it."""


@command.command("list")
@click.option("--terms", nargs=2, metavar="A B", help="Which files of each lab differ between two terms, instead.")
@click.argument("more", nargs=-1, metavar="")
def list_labs(terms: tuple[str, str] | None, more: tuple[str, ...]) -> None:
    """The labs, and the file that each asks for."""
    if more:
        raise click.UsageError(f"--terms compares two terms: {more[0]} is one too many" if terms else "two terms are named by --terms A B")
    if terms is not None:
        one, other = (Term(term_name(name)) for name in terms)
        for lab in labs():
            structures = "".join(f"; {term.name}: {words}" for term in (one, other) if (words := lab.structure(term)))
            click.echo(f"{lab.number:>2}  {lab.name:<14}  {_differing(differing(lab, (one, other)))}{structures}")
        return
    for lab in labs():
        click.echo(described(f"{lab.number:>2}  {lab.name:<14} ", 19, f"{lab.title}; you write {_asked_for(lab)}"))


def _differing(names: tuple[str, ...]) -> str:
    more = f" and {counted(len(names) - NAMED, 'more file')}" if len(names) > NAMED else ""
    return f"differs in {', '.join(names[:NAMED])}{more}" if names else "the same in both terms"


def _asked_for(lab: Lab) -> str:
    if not lab.functions:
        return f"{lab.file} and so on"
    return f"{', '.join(lab.functions)} in {lab.file}"


@command.command("start")
@click.argument("which", metavar="N")
@click.argument("folder", type=FILE, default=None, required=False, metavar="[DIR]")
@term_option
@click.option("--student", metavar="ID", help="For instructors: the student's own variant of the term; --key makes it.")
@click.option("--key", type=FILE, metavar="FILE", help="With --student: any 16 bytes or more that only you know, for --per-student.")
def start_lab(which: str, folder: Path | None, term: str | None, student: str | None, key: Path | None) -> None:
    """Write lab N into a new folder: its handout, and a file to begin with. The folder has the lab's name, if not given."""
    lab = find(which)
    folder = folder or Path(lab.name if student is None else student)
    if (student is None) != (key is None) or student == "":
        raise click.UsageError("a student's own variant needs both: --student ID says whose, and --key FILE, a secret of yours, makes it")
    variants = Variants(lab, Term(term or ""), None if key is None else key_of(key))
    files = start(lab, folder, variants.term if student is None else variants.of_student(student))
    shown = printable(str(folder))
    click.echo(filled(f"{shown}: {', '.join(files)}", "", "  "))
    click.echo()
    click.echo(filled(f"read {printable(str(folder / 'handout.md'))}, write {_asked_for(lab)}, and run", "", "  "))
    click.echo(f"tpucc lab check {shown}")


@command.command("check")
@click.argument("path", type=FILE, default=Path("."), metavar="DIR")
@lab_option
@term_option
@only_option
@click.option("--json", "json_file", type=FILE, metavar="RESULTS.json", help="Write the results, after every test.")
@click.option("--trust", is_flag=True, help="Run your code in this process, without limits: there breakpoint() works.")
def check_lab(path: Path, which: str | None, term: str | None, only: tuple[str, ...], json_file: Path | None, trust: bool) -> int:
    """Run the public tests on the lab in DIR. Exit status 1 unless all pass; pictures of what your code did are in DIR/check."""
    keep_inputs(json_file)
    lab, variant = lab_and_term(path, which, term)
    click.echo(heading(lab, variant))
    done = check(lab, path, variant, only, lambda sofar: follow(sofar, json_file), trust)
    folder = path if path.is_dir() else path.parent
    write_pictures(done, folder)
    status = end(done)
    if done.spent > BUDGET / 3:
        click.echo(filled(f"the calls took {done.spent:.0f} of {BUDGET:g} s of processor time; grade makes about twice as many", "", "  "))
    hidden = sum(test.points for test in lab.hidden(variant, 0))
    click.echo(f"hidden tests, which `tpucc lab grade` runs, have the other {hidden:g}" if not only else "")
    return status


@command.command("puzzle")
@click.argument("number", type=int, default=None, required=False, metavar="[N]")
@click.argument("path", type=FILE, default=None, required=False, metavar="[DIR or FILE]")
@term_option
@click.option("--seed", type=click.IntRange(0), help="Draws the numbers (default: other ones each time).")
def show_or_check_puzzle(number: int | None, path: Path | None, term: str | None, seed: int | None) -> int:
    """Show puzzle N of lab 0; with FILE, check a solution; without N, list them. The term is that of the lab's folder, here or DIR or
    FILE's, if not given."""
    folder = Path() if path is None else path if path.is_dir() else path.parent
    own = place(folder)[1] if (folder / LAB_FILE).is_file() else None
    said = Term(term) if term is not None else own or Term()
    if number is None:
        click.echo("\n".join(each.name for each in find(0).public(said)))
        click.echo("\ntpucc lab puzzle N shows one; tpucc lab start 0 writes a folder with all")
        return 0
    asked = puzzle(number, said.name)
    if path is None or path.is_dir():
        click.echo(heading(find(0), said))
        if own is None and term is None:
            where = "the current folder" if folder == Path() else printable(str(folder))
            told = (
                f"note: {where} is no lab's: tpucc lab start 0 writes one, with a file for each puzzle. Does your course have a term? Then"
            )
            click.echo(filled(f"{told} --term NAME, here too, gives its numbers", "", "  "))
        click.echo(str(asked))
        option = "" if said == (own or Term()) else said.option
        click.echo(f"\nwrite {asked.file}, and run\ntpucc lab puzzle {number} {quote(printable(str(folder / asked.file)))}{option}")
        return 0
    seed = random_seed() if seed is None else seed
    verdict = asked.check(read_file(path, most=2**20).decode("utf-8", "replace"), seed)
    tell("\n".join(map(printable, str(verdict).splitlines())))
    click.echo(f"{said}; --seed {seed}")
    return 0 if verdict.solved else 1


command.add_command(grade_lab)
command.add_command(mine)
command.add_command(oral)


@command.command("collect")
@click.argument("export", type=FILE, metavar="EXPORT.zip|DIR")
@click.option("-o", "--output", type=FILE, required=True, metavar="FOLDER", help="The new folder, with one for each student.")
@lab_option
@term_option
def collect_lab(export: Path, output: Path, which: str | None, term: str | None) -> None:
    """Make folders that `grade --all` takes of what Moodle, Canvas or another platform gives for all submissions.

    Archives inside are opened. Files with other names are taken for the lab's where it is clear which they are. What was taken for what,
    and what was left out, is said.
    """
    from tpucc.labs.collecting import collect

    if which is None:
        raise click.UsageError("--lab N says which lab the submissions are of")
    lab = find(which)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(Diagnostic("E0528", f"{printable(str(output))} is there already", help=("name another folder",)))
    found = collect(export, lab, Term(term or ""))
    for student, files in found.files.items():
        for name, content in files.items():
            write_file(output / student / name, content)
    told = [*found.taken, *(f"left out: {words}" for words in found.left)]
    for words in told[:LISTED]:
        click.echo(filled(printable(words), "", "  "))
    if len(told) > LISTED:
        click.echo(f"and {len(told) - LISTED:,} more")
    if found.without:
        click.echo(filled(f"nothing could be taken of {printable(listed(found.without))}", "", "  "))
    click.echo(f"{counted(len(found.files), 'submission')} in {printable(str(output))}")


@command.command("return")
@click.argument("results", type=FILE, metavar="RESULTS")
@click.option("-o", "--output", type=FILE, required=True, metavar="PAGES", help="The folder for the pages.")
def return_lab(results: Path, output: Path) -> None:
    """Write a page for each student of the RESULTS of `grade --all`: what public tests found, and of hidden tests the points."""
    from tpucc.labs.published import pages_of

    pages = pages_of(results)
    write_files(output, pages)
    click.echo(f"{counted(len(pages), 'page')} in {printable(str(output))}")


@command.command("pack")
@click.argument("which", metavar="N")
@click.option("-o", "--output", type=FILE, required=True, metavar="ZIP", help="The archive to write.")
@click.option("--gradescope", is_flag=True, help="An autograder for Gradescope, instead of the students' archive.")
@click.option("--seed", type=click.IntRange(0), help="With --gradescope: draws the hidden tests (default: one that nobody knows).")
@term_option
def pack_lab(which: str, output: Path, gradescope: bool, seed: int | None, term: str | None) -> None:
    """Write lab N as an archive: tpucc without the lab's solution, the handout, the skeleton and the public tests."""
    from tpucc.labs.packing import for_gradescope, for_students

    lab, variant = find(which), Term(term or "")
    if gradescope:
        warn_of_small(seed)
    content = for_gradescope(lab, variant, random_seed() if seed is None else seed) if gradescope else for_students(lab, variant)
    write_file(output, content)
    click.echo(f"{printable(str(output))}: {len(content):,} bytes, lab {lab.number} ({lab.name}){f' of {printable(term)}' if term else ''}")


@command.command("board")
@click.argument("folder", type=FILE, metavar="RESULTS")
@click.option("-o", "--output", type=FILE, metavar="BOARD.html", help="Write it as a page, too.")
def lab_board(folder: Path, output: Path | None) -> None:
    """The leaderboard of the results in a folder: the least first, equal ones by their names."""
    from tpucc.labs.published import as_page, as_text, board

    keep_inputs(output, more=folder.glob("*.json"))
    found = board(folder)
    click.echo(as_text(found))
    if found.left_out:
        say(f"not on the board: {counted(len(found.left_out), 'file')}")
        more = [f"… {len(found.left_out) - LEFT_OUT:,} more"] if len(found.left_out) > LEFT_OUT else []
        say("\n".join(f"  {said}" for said in (*found.left_out[:LEFT_OUT], *more)))
    if output is not None:
        write_file(output, as_page(found).encode())

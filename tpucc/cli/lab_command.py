"""`tpucc lab`: coursework."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click

from tpucc.cli.columns import described, filled
from tpucc.cli.messages import room_of, say, tell
from tpucc.cli.options import FILE
from tpucc.cli.places import keep_inputs
from tpucc.diagnostics import Diagnostic, UsageError, counted, listed, printable
from tpucc.files import read_file
from tpucc.guest.jails import NONE, Jail
from tpucc.labs import find, labs, puzzle
from tpucc.labs.calls import packed_call
from tpucc.labs.child import BUDGET
from tpucc.labs.classes import SEED, Row, as_csv, earlier_seed, first_line, grade_all
from tpucc.labs.grading import Grade, Result, check, grade, isolated, random_seed
from tpucc.labs.lab import Lab, Term
from tpucc.labs.results import file_name, printable_lines, printed_lines, report, saved_call, write_json
from tpucc.labs.start import differing, disagreement, place, start
from tpucc.labs.submissions import FILE as LAB_FILE
from tpucc.labs.submissions import others, submissions
from tpucc.labs.variants import Variants, key_of
from tpucc.output_files import write_file, write_files

LONGEST_TERM = 64
"""Characters of a term's name."""
LEFT_OUT = 5
"""Files without a place on the board that are named."""
NAMED = 3
"""Files that differ between two terms that are named."""
SMALL_SEED = 2**32
"""Seeds below can all be tried in little time."""
INDENT = 6 * " "
LISTED = 60
"""Lines of what was taken and left out that are printed."""
RAISED = "it raised an exception"
"""The trouble of a test that an exception ended."""


def _term_name(given: str) -> str:
    """A term's name without its case, which may be any word that reads the same to everybody. Raises `UsageError` E0550."""
    if given and (given != given.strip() or len(given) > LONGEST_TERM or not re.fullmatch(r"[\w .+-]+", given, re.ASCII)):
        help = (f"letters, digits, spaces and . _ + -, at most {LONGEST_TERM} of them, as in 2027-spring",)
        raise UsageError(Diagnostic("E0550", f"{given!r} can't be a term's name", help=help))
    return given.casefold()


term_option = click.option(
    "--term",
    metavar="NAME",
    callback=lambda context, option, given: given and _term_name(given),
    help="The term: its labs have their own numbers and rules. Each name is one.",
)
lab_option = click.option("--lab", "which", metavar="N", help="The lab, where the folder doesn't say it.")


only_option = click.option(
    "--only", multiple=True, metavar="TEST", help="Run one test, by its name or the words that it begins with; may be given again."
)


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
        one, other = (Term(_term_name(name)) for name in terms)
        for lab in labs():
            click.echo(f"{lab.number:>2}  {lab.name:<14}  {_differing(differing(lab, (one, other)))}")
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
@click.option("--key", type=FILE, metavar="FILE", help="With --student: a secret of yours, by which --per-student grades.")
def start_lab(which: str, folder: Path | None, term: str | None, student: str | None, key: Path | None) -> None:
    """Write lab N into a new folder: its handout, and a file to begin with. The folder has the lab's name, if not given."""
    lab = find(which)
    folder = folder or Path(lab.name if student is None else student)
    if (student is None) != (key is None) or student == "":
        raise click.UsageError("a student's own variant needs both: --student ID says whose, and --key FILE makes it")
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
def check_lab(path: Path, which: str | None, term: str | None, only: tuple[str, ...], json_file: Path | None) -> int:
    """Run the public tests on the lab in DIR. Exit status 1 unless all pass; pictures of what your code did are in DIR/check."""
    keep_inputs(json_file)
    lab, variant = _asked(path, which, term)
    click.echo(_heading(lab, variant))
    done = check(lab, path, variant, only, lambda sofar: _follow(sofar, json_file))
    folder = path if path.is_dir() else path.parent
    _pictures(done, folder)
    status = _end(done)
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
    own = place(folder).term if (folder / LAB_FILE).is_file() else None
    said = Term(term) if term is not None else own or Term()
    if number is None:
        click.echo("\n".join(each.name for each in find(0).public(said)))
        click.echo("\ntpucc lab puzzle N shows one; tpucc lab start 0 writes a folder with all")
        return 0
    asked = puzzle(number, said.name)
    if path is None or path.is_dir():
        click.echo(_heading(find(0), said))
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


@command.command("grade")
@click.argument("path", type=FILE, default=Path("."), metavar="DIR")
@lab_option
@term_option
@click.option(
    "--seed",
    type=click.IntRange(0),
    envvar=SEED,
    help=f"Draws the hidden tests (default: {SEED} of the environment, or one that nobody knows, which is said).",
)
@click.option("--json", "json_file", type=FILE, metavar="RESULTS.json", help="Write Gradescope's results, after every test.")
@click.option("--details", is_flag=True, help="With --json: what hidden tests found, too. Not for students.")
@only_option
@click.option("--trust", is_flag=True, help="Grade without isolation: only for submissions that you have read.")
@click.option("--all", "whole_class", is_flag=True, help="DIR has a submission in each file or folder: grade them all.")
@click.option("--into", type=FILE, metavar="RESULTS", help="With --all: the folder for each one's results, and where to go on from.")
@click.option("--per-student", is_flag=True, help="Each has the variant of a student, the name of its file or folder; with --key.")
@click.option("--key", type=FILE, metavar="FILE", help="With --per-student: the secret that `start --student` had.")
@click.option("-o", "--output", type=FILE, metavar="GRADES.csv", help="With --all: the table.")
@click.option("--likeness", type=FILE, metavar="PAGE.html", help="With --all: a page of submissions that are alike or unusual.")
@click.option("--earlier", type=FILE, multiple=True, metavar="DIR", help="With --likeness: submissions of earlier terms; repeatable.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="With --all: how many at a time (default: as many as cores).")
@click.option(
    "--scheduler", metavar="ADDRESS", help="With --all: grade on the Dask cluster of this scheduler, yours alone, as in tcp://HOST:8786."
)
def grade_lab(
    path: Path,
    which: str | None,
    term: str | None,
    seed: int | None,
    json_file: Path | None,
    details: bool,
    only: tuple[str, ...],
    trust: bool,
    whole_class: bool,
    per_student: bool,
    key: Path | None,
    likeness: Path | None,
    earlier: tuple[Path, ...],
    jobs: int | None,
    scheduler: str | None,
    **table: Any,
) -> int:
    """Run the public and the hidden tests on a submission, or on all of a class, isolated from this machine."""
    keep_inputs(json_file, table["output"], likeness)
    _require_pairs(per_student, key, earlier)
    lab, said = _asked_by_grader(path, which, term)
    variants = Variants(lab, said, None if key is None else key_of(key))
    variant = said if whole_class else variants.of(path.absolute())
    _require_of_class(whole_class, json_file is not None or bool(only), likeness, earlier, scheduler is not None, jobs)
    try:
        jail = NONE if trust or not lab.functions else None if scheduler is not None else isolated()
    except UsageError as error:
        if json_file is not None:
            write_json(Grade(lab, variant, "none", tests=tuple(lab.public(variant)), problem=error.diagnostics[0].message), json_file)
        raise
    if whole_class:
        _warn_of_small(seed)
        table["into"] = table["into"] or _named_after(path, "-results")
        names = {variants.of(each).name for each in submissions(path, lab)}
        seed = earlier_seed(table["into"], lab, names) if seed is None else seed
        table["output"] = table["output"] or _named_after(table["into"], ".csv")
    if jail is not None:
        secret = [path, table["into"], table["output"]] if whole_class else [json_file] if json_file is not None and details else []
        _require_closed(jail, secret, [path.absolute().parent, json_file, Path()])
    seed = random_seed() if seed is None else seed
    if jail is not None and not whole_class:
        _require_closed(jail, _beside(path, lab))
    click.echo(_heading(lab, variant))
    isolation = "not needed, as nothing of the submission is executed" if not lab.functions else jail.name if jail else "each worker's own"
    click.echo(f"isolation: {isolation}; --seed {seed}")
    if whole_class:
        graders = partial(grade_all, jail=jail, jobs=jobs or os.cpu_count() or 1, scheduler=scheduler)
        status = _class(variants, path, seed, graders, scheduler is not None, **table)
        if jail is not None and jail.name == "user":
            table["output"].chmod(0o600)  # the next submissions could read it, and the seed is in it
        if likeness is not None:
            _write_likeness(variants, path, earlier, likeness)
        return status
    assert jail is not None, "--scheduler is for classes"
    return _end(grade(lab, path, variant, seed, jail, only, lambda sofar: _follow(sofar, json_file, details)))


def _require_pairs(per_student: bool, key: Path | None, earlier: Sequence[Path]) -> None:
    """Raises `click.UsageError` for an option without the one that it needs, and `UsageError` E0551 for a folder that isn't there."""
    if per_student != (key is not None):
        raise click.UsageError("--per-student and --key FILE belong together")
    for each in earlier:
        _require_there(each)


def _require_of_class(
    whole: bool, single: bool, likeness: Path | None, earlier: Sequence[Path], on_cluster: bool, jobs: int | None
) -> None:
    """Raises `click.UsageError` for options of one submission with a `whole` class, and for those of a class without."""
    if whole and single:
        raise click.UsageError("--all takes neither --json nor --only: --into names the folder of each one's results")
    if (likeness is not None and not whole) or (earlier and likeness is None):
        raise click.UsageError("--likeness compares the submissions of a class (--all); --earlier says with which others")
    if on_cluster and (not whole or jobs is not None):
        raise click.UsageError("--scheduler grades a class (--all) on the workers that a cluster has; --jobs is of this machine")


def _named_after(path: Path, ending: str) -> Path:
    """A place beside a folder, which may be the current one."""
    named = path if path.name else path.absolute()
    return named.parent / f"{named.name}{ending}"


def _require_closed(jail: Jail, secret: Sequence[Path], others: Sequence[Path | None] = ()) -> None:
    """Raises `UsageError` E0552 for a folder or a file that submissions could read. A jail of file modes shows the whole system, and there
    only what is `secret` is asked for, as far as it is there: others' work, results with what hidden tests found, tables with the seed.
    The `others` may lie where jails show the interpreter."""
    asked = [*secret, *(other for other in others if other is not None and jail.name != "user")]
    for each in asked:
        if (jail.name != "user" or each.exists()) and jail.reaches(each):
            shown = printable(str(each.absolute()))
            message = f"with the isolation {jail.name}, submissions could read {shown}"
            raise UsageError(Diagnostic("E0552", message, help=(jail.advice(quote(shown)),)))


def _beside(path: Path, lab: Lab) -> list[Path]:
    """Others' submissions of the lab in the folder in which one lies."""
    found = submissions(path.absolute().parent, lab)
    return [each for each in found if each != path.absolute() and (each.suffix == ".py" or (each / lab.file).is_file())]


def _warn_of_small(seed: int | None) -> None:
    """Says of a seed that was chosen for a class that it can be guessed."""
    if seed is not None and seed < SMALL_SEED:
        say("warning: so small a seed can be found from the grades by trying; take a random one of 16 digits or more")


def _heading(lab: Lab, term: Term) -> str:
    return f"lab {lab.number} ({lab.name}), {term}"


def _class(
    variants: Variants, folder: Path, seed: int, graders: Callable[..., list[Row]], on_cluster: bool, into: Path, output: Path
) -> int:
    from tpucc.cli.progress import ClassProgress  # imports the compiler, which other commands of labs don't need

    lab = variants.lab
    beside = others(folder, lab)
    if named := [path for path in beside if path.is_dir()]:
        say(f"not graded, as no submission may have such a name: {', '.join(printable(path.name) for path in named)}")
    if beside := [path for path in beside if path not in named]:
        kinds = "neither folders nor .py files" if lab.functions else "no folders, of which each student of this lab needs one"
        say(f"not graded, as {kinds}: {', '.join(printable(path.name) for path in beside)}")
    if named := [path for path in submissions(folder, lab) if path.is_dir() and disagreement(path, lab, variants.of(path))]:
        whose = ", ".join(printable(path.name) for path in named)
        expected = variants.term if variants.key is None else "the variant of the student whose name the folder has"
        say(f"warning: {LAB_FILE} doesn't say lab {lab.number}, {expected}: {whose}")
    if variants.key and (named := [path for path in submissions(folder, lab) if not (path / LAB_FILE).is_file()]):
        whose = ", ".join(printable(path.name) for path in named)
        say(f"note: without {LAB_FILE}, which would say its variant; is the name the student's? {whose}")
    with ClassProgress(len(submissions(folder, lab)), on_cluster) as progress:

        def told(row: Row) -> None:
            with progress.aside():
                click.echo(_row(row))
            progress.done(row.name)

        rows = graders(variants, folder, seed, into, told=told, begun=progress.begun, noted=progress.note)
    write_file(output, as_csv(rows).encode())
    click.echo(f"{counted(len(rows), 'submission')}: {printable(str(output))}, and what each test found in {printable(str(into))}")
    return 0


def _write_likeness(variants: Variants, folder: Path, earlier: Sequence[Path], page: Path) -> None:
    from tpucc.labs.class_likeness import groups_of, read_class
    from tpucc.labs.likeness_page import likeness_page  # pages and graphs, which no other command of labs needs

    own, before = read_class(variants, folder, earlier)
    groups = groups_of(own, before)
    write_file(page, likeness_page(variants.lab, variants.term, own, groups, len(before)).encode())
    click.echo(f"{counted(len(groups), 'group')} of submissions that are alike: {printable(str(page))}")


def _row(row: Row) -> str:
    """The points, the name, and of a submission without points the first reason."""
    score = row.results.get("score", 0)
    lost = (str(test["output"]) for test in row.results.get("tests", ()) if not score and test["status"] != "passed")
    problem = first_line(row.problem or next(lost, ""))
    return f"{score:>6g}  {printable(row.name)}{f'  {printable(problem)}' if problem else ''}"


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
    from tpucc.labs.returning import pages_of

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
        _warn_of_small(seed)
    content = for_gradescope(lab, variant, random_seed() if seed is None else seed) if gradescope else for_students(lab, variant)
    write_file(output, content)
    click.echo(f"{printable(str(output))}: {len(content):,} bytes, lab {lab.number} ({lab.name}){f' of {printable(term)}' if term else ''}")


@command.command("board")
@click.argument("folder", type=FILE, metavar="RESULTS")
@click.option("-o", "--output", type=FILE, metavar="BOARD.html", help="Write it as a page, too.")
def lab_board(folder: Path, output: Path | None) -> None:
    """The leaderboard of the results in a folder: the least first, equal ones by their names."""
    from tpucc.labs.board import as_page, as_text, board

    keep_inputs(output, more=folder.glob("*.json"))
    found = board(folder)
    click.echo(as_text(found))
    if found.left_out:
        say(f"not on the board: {counted(len(found.left_out), 'file')}")
        more = [f"… {len(found.left_out) - LEFT_OUT:,} more"] if len(found.left_out) > LEFT_OUT else []
        say("\n".join(f"  {said}" for said in (*found.left_out[:LEFT_OUT], *more)))
    if output is not None:
        write_file(output, as_page(found).encode())


def _asked(path: Path, which: str | None, term: str | None) -> tuple[Lab, Term]:
    """The lab and the term of the command line, or else of the folder. Raises `UsageError` E0551 for a folder that isn't there."""
    _require_there(path)
    if which is not None:
        return find(which), Term(term or "")
    found = place(path)
    return found.lab, found.term if term is None else Term(term)


def _require_there(path: Path) -> None:
    """Raises `UsageError` E0551 for a folder or a file that isn't there."""
    if not path.exists():
        raise UsageError(Diagnostic("E0551", f"there is no folder {printable(str(path))}", help=("tpucc lab start N FOLDER begins a lab",)))


def _asked_by_grader(path: Path, which: str | None, term: str | None) -> tuple[Lab, Term]:
    """The lab and the term that a submission is graded for. The term is the command line's: the submission's file is the student's. Raises
    `UsageError` E0551 where neither lab nor term is given, and the file says a term."""
    _require_there(path)
    if which is not None:
        return find(which), Term(term or "")
    found = place(path)
    if term is None and found.term.name:
        named = f"--lab {found.lab.number} --term {quote(printable(found.term.name))}"
        message = f"grade takes the term from --term, and {LAB_FILE} says {found.term}"
        raise UsageError(Diagnostic("E0551", message, help=(f"{named} grades as the file says",)))
    click.echo(f"--lab isn't given: lab {found.lab.number} is what {LAB_FILE} says")
    return found.lab, Term(term or "")


def _follow(sofar: Grade, json_file: Path | None, details: bool = False) -> None:
    """Prints the newest result, and writes all of them."""
    if json_file is not None:
        write_json(sofar, json_file, details)
    if sofar.results and not sofar.problem:
        click.echo(_line(sofar.results[-1], sofar))


def _line(result: Result, sofar: Grade) -> str:
    mark = "ok" if result.outcome.passed else "part" if result.score else "FAIL"
    head = f"{mark:<5}{result.score:>6g} of {result.test.points:g}  {result.test.name}"
    raised = _raised(result)
    if (earlier := next((other for other in sofar.results[:-1] if raised and _raised(other) == raised), None)) is not None:
        return f"{head}\n{INDENT}the same exception as in `{earlier.test.name}`"
    if (earlier := next((other for other in sofar.results[:-1] if _told(result) and _told(other) == _told(result)), None)) is not None:
        return f"{head}\n{INDENT}the same as in `{earlier.test.name}`"
    room = room_of(sys.stdout)
    told = report(result, sofar, whole=False, width=room - len(INDENT) if room else None)
    return "\n".join((head, *(f"{INDENT}{line}" for line in told.splitlines())))


def _told(result: Result) -> str:
    """What a failed test's message says, where there is nothing beside it."""
    outcome = result.outcome
    return "" if outcome.passed or outcome.given or outcome.expected or outcome.found or outcome.drawing else outcome.message


def _raised(result: Result) -> str:
    """`allocation.py:9: ValueError`, of a test that an exception of the submission's ended; nothing of any other."""
    found = re.match(r"[^\n]+?:\d+: \w+", result.outcome.message) if result.trouble == RAISED else None
    return found[0] if found else ""


def _end(done: Grade) -> int:
    """Prints what remains to be said of a grade. Returns the exit status."""
    if done.note and done.note != done.problem:
        click.echo(filled(f"note: {done.note}", "", "  "))
    if done.problem:
        click.echo(printable_lines(done.problem))
        click.echo(f"for that reason no test was run: {counted(len(done.results), 'test')} with 0 points")
    for line in printed_lines(done.printed, False, "--json RESULTS.json"):
        click.echo(line)
    for result in done.results:
        if result.fault:
            say(result.fault)
    for words in done.like:
        click.echo(filled(f"for you to judge: {words}", "", "  "))
    click.echo(f"{done.score:g} of {done.most:g} points; {counted(len(done.results), 'test')}")
    return 0 if not done.problem and all(result.outcome.passed for result in done.results) else 1


def _pictures(done: Grade, folder: Path) -> None:
    """Writes a picture for each test that has one, and the arguments of each call that lost points."""
    drawn = {f"{file_name(result.test.name)}.svg": result.outcome.picture() for result in done.results if result.outcome.picture}
    if (folder / "check").is_symlink():
        raise UsageError(Diagnostic("E0505", f"can't write pictures to {printable(str(folder / 'check'))}: it is a link"))
    calls = {name: packed_call(arguments) for name, arguments in map(saved_call, done.results) if name}
    for result in done.results:
        for kind in ("svg", "call"):
            (folder / "check" / f"{file_name(result.test.name)}.{kind}").unlink(missing_ok=True)  # an earlier run's
    if calls:
        write_files(folder / "check", calls)
    if drawn:
        write_files(folder / "check", {name: svg.encode() for name, svg in drawn.items()})
        click.echo(filled(f"pictures: {', '.join(printable(str(folder / 'check' / name)) for name in drawn)}", "", "  "))

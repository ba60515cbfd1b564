"""`tpucc lab grade`: the hidden tests, on one submission or on a whole class; and `tpucc lab oral`, which asks about what they found."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any

import click

from tpucc.cli.lab_shared import end, follow, heading, lab_and_term, lab_option, only_option, require_there, term_option
from tpucc.cli.messages import say
from tpucc.cli.options import FILE
from tpucc.cli.places import keep_inputs
from tpucc.diagnostics import Diagnostic, UsageError, counted, printable
from tpucc.guest.jails import NONE, Jail
from tpucc.labs import find
from tpucc.labs.classes import SEED, Row, as_csv, earlier_seed, first_line, grade_all
from tpucc.labs.grading import Grade, grade, isolated, random_seed
from tpucc.labs.lab import Lab, Term
from tpucc.labs.results import printable_lines, write_json
from tpucc.labs.start import disagreement
from tpucc.labs.submissions import FILE as LAB_FILE
from tpucc.labs.submissions import Variants, key_of, others, submissions
from tpucc.output_files import write_file

SMALL_SEED = 2**32
"""Seeds below can all be tried in little time."""


seed_option = click.option(
    "--seed",
    type=click.IntRange(0),
    envvar=SEED,
    help=f"Draws the hidden tests (default: {SEED} of the environment, or one that nobody knows, which is said).",
)
trust_option = click.option("--trust", is_flag=True, help="Grade without isolation: only for submissions that you have read.")
per_student_option = click.option(
    "--per-student", is_flag=True, help="Each has the variant of a student, the name of its file or folder; with --key."
)
key_option = click.option("--key", type=FILE, metavar="FILE", help="With --per-student: the secret that `start --student` had.")


@click.command("grade")
@click.argument("path", type=FILE, default=Path("."), metavar="DIR")
@lab_option
@term_option
@seed_option
@click.option("--json", "json_file", type=FILE, metavar="RESULTS.json", help="Write Gradescope's results, after every test.")
@click.option("--details", is_flag=True, help="With --json: what hidden tests found, too. Not for students.")
@only_option
@trust_option
@click.option("--all", "whole_class", is_flag=True, help="DIR has a submission in each file or folder: grade them all.")
@click.option("--into", type=FILE, metavar="RESULTS", help="With --all: the folder for each one's results, and where to go on from.")
@per_student_option
@key_option
@click.option("-o", "--output", type=FILE, metavar="GRADES.csv", help="With --all: the table.")
@click.option("--likeness", type=FILE, metavar="PAGE.html", help="With --all: a page of submissions that are alike or unusual.")
@click.option("--earlier", type=FILE, multiple=True, metavar="DIR", help="With --likeness: submissions of earlier terms; repeatable.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="With --all: how many at a time (default: as many as cores).")
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
    **table: Any,
) -> int:
    """Run the public and the hidden tests on a submission, or on all of a class, isolated from this machine."""
    keep_inputs(json_file, table["output"], likeness)
    _require_pairs(whole_class, json_file is not None or bool(only), (per_student, key is not None), likeness, earlier)
    lab, said = lab_and_term(path, which, term, graded=True)
    variants = Variants(lab, said, None if key is None else key_of(key))
    variant = said if whole_class else variants.of(path.absolute())
    try:
        jail = NONE if trust or not lab.functions else isolated()
    except UsageError as error:
        if json_file is not None:
            write_json(Grade(lab, variant, "none", tests=tuple(lab.public(variant)), problem=error.diagnostics[0].message), json_file)
        raise
    if whole_class:
        warn_of_small(seed)
        table["into"] = table["into"] or _named_after(path, "-results")
        names = {variants.of(each).name for each in submissions(path, lab)}
        seed = earlier_seed(table["into"], lab, names) if seed is None else seed
        table["output"] = table["output"] or _named_after(table["into"], ".csv")
    secret = [path, table["into"], table["output"]] if whole_class else [json_file] if json_file is not None and details else []
    require_closed(jail, secret, [path.absolute().parent, json_file, Path()])
    seed = random_seed() if seed is None else seed
    if not whole_class:
        require_closed(jail, beside(path, lab))
    _begin(lab, variant, jail, seed)
    if not whole_class:
        return end(grade(lab, path, variant, seed, jail, only, lambda sofar: follow(sofar, json_file, details)))
    _class(partial(grade_all, variants, path, seed, jail=jail, jobs=jobs or os.cpu_count() or 1), variants, path, **table)
    if jail.name == "user":
        table["output"].chmod(0o600)  # the next submissions could read it, and the seed is in it
    if likeness is not None:
        _write_likeness(variants, path, earlier, likeness)
    return 0


def _require_pairs(whole: bool, single: bool, keyed: tuple[bool, bool], likeness: Path | None, earlier: Sequence[Path]) -> None:
    """Raises `click.UsageError` for an option without the one that it needs: those of one submission belong to no `whole` class, and those
    of a class to no `single` one; and `UsageError` E0551 for a folder that isn't there."""
    require_keyed(*keyed)
    for each in earlier:
        require_there(each)
    if whole and single:
        raise click.UsageError("--all takes neither --json nor --only: --into names the folder of each one's results")
    if (likeness is not None and not whole) or (earlier and likeness is None):
        raise click.UsageError("--likeness compares the submissions of a class (--all); --earlier says with which others")


def require_keyed(per_student: bool, keyed: bool) -> None:
    """Raises `click.UsageError` for one of the two options without the other."""
    if per_student != keyed:
        raise click.UsageError("--per-student and --key FILE belong together")


def _named_after(path: Path, ending: str) -> Path:
    """A place beside a folder, which may be the current one."""
    named = path if path.name else path.absolute()
    return named.parent / f"{named.name}{ending}"


def require_closed(jail: Jail, secret: Sequence[Path], others: Sequence[Path | None] = ()) -> None:
    """Raises `UsageError` E0552 for a folder or a file that submissions could read. A jail of file modes shows the whole system, and there
    only what is `secret` is asked for, as far as it is there: others' work, results with what hidden tests found, tables with the seed.
    The `others` may lie where jails show the interpreter."""
    asked = [*secret, *(other for other in others if other is not None and jail.name != "user")]
    for each in asked:
        if (jail.name != "user" or each.exists()) and jail.reaches(each):
            shown = printable(str(each.absolute()))
            message = f"with the isolation {jail.name}, submissions could read {shown}"
            raise UsageError(Diagnostic("E0552", message, help=(jail.advice(quote(shown)),)))


def beside(path: Path, lab: Lab) -> list[Path]:
    """Others' submissions of the lab in the folder in which one lies."""
    found = submissions(path.absolute().parent, lab)
    return [each for each in found if each != path.absolute() and (each.suffix == ".py" or (each / lab.file).is_file())]


def warn_of_small(seed: int | None) -> None:
    """Says of a seed that was chosen for a class that it can be guessed."""
    if seed is not None and seed < SMALL_SEED:
        say("warning: so small a seed can be found from the grades by trying; take a random one of 12 to 15 digits")


def _class(graders: Callable[..., list[Row]], variants: Variants, folder: Path, into: Path, output: Path) -> None:
    """Grades a class, and says of what lies in its folder what isn't graded and what may be another's."""
    from tpucc.cli.progress import ClassProgress  # imports the compiler, which other commands of labs don't need

    def say_of(words: str, paths: Sequence[Path]) -> None:
        if paths:
            say(f"{words}: {', '.join(printable(path.name) for path in paths)}")

    lab, graded, beside = variants.lab, submissions(folder, variants.lab), others(folder, variants.lab)
    say_of("not graded, as no submission may have such a name", [path for path in beside if path.is_dir()])
    kinds = "neither folders nor .py files" if lab.functions else "no folders, of which each student of this lab needs one"
    say_of(f"not graded, as {kinds}", [path for path in beside if not path.is_dir()])
    expected = variants.term if variants.key is None else "the variant of the student whose name the folder has"
    another = [path for path in graded if path.is_dir() and disagreement(path, lab, variants.of(path))]
    say_of(f"warning: {LAB_FILE} doesn't say lab {lab.number}, {expected}", another)
    unsaid = [path for path in graded if variants.key and not (path / LAB_FILE).is_file()]
    say_of(f"note: without {LAB_FILE}, which would say its variant; is the name the student's?", unsaid)
    with ClassProgress(len(graded)) as progress:

        def told(row: Row) -> None:
            with progress.aside():
                click.echo(_row(row))
            progress.done(row.name)

        rows = graders(into, told=told, begun=progress.begun)
    write_file(output, as_csv(rows).encode())
    click.echo(f"{counted(len(rows), 'submission')}: {printable(str(output))}, and what each test found in {printable(str(into))}")


def _write_likeness(variants: Variants, folder: Path, earlier: Sequence[Path], page: Path) -> None:
    from tpucc.labs.likeness import groups_of, read_class
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


@click.command("oral")
@click.argument("which", metavar="N")
@click.argument("path", type=FILE, metavar="SUBMISSION")
@click.option("-o", "--output", type=FILE, required=True, metavar="SHEET.html", help="The page to write. Not for students.")
@term_option
@seed_option
@per_student_option
@key_option
@trust_option
def oral(which: str, path: Path, output: Path, term: str | None, seed: int | None, per_student: bool, key: Path | None, trust: bool) -> int:
    """Write questions for an oral examination on lab N, made of what a SUBMISSION did in the tests, with answers for the examiner.

    The tests run as in `grade`, by the same options, and a few times more. The same seed gives the same sheet.
    """
    from tpucc.labs.oral import examined
    from tpucc.labs.oral_page import oral_page  # pages, which few commands of labs need

    keep_inputs(output)
    require_keyed(per_student, key is not None)
    require_there(path)
    lab = find(which)
    variant = Variants(lab, Term(term or ""), None if key is None else key_of(key)).of(path.absolute())
    jail = NONE if trust or not lab.functions else isolated()
    require_closed(jail, [output], [path.absolute().parent, output, Path()])
    require_closed(jail, beside(path, lab))
    seed = random_seed() if seed is None else seed
    _begin(lab, variant, jail, seed)
    done, questions = examined(lab, path, variant, seed, jail)
    for result in done.results:
        if result.fault:
            say(result.fault)
    if not questions:
        click.echo(f"{printable_lines(done.problem)}\nfor that reason there is nothing to ask")
        return 1
    write_file(output, oral_page(done, questions, str(path)).encode())
    click.echo(f"{counted(len(questions), 'question')}, with answers: {printable(str(output))}")
    return 0


def _begin(lab: Lab, term: Term, jail: Jail, seed: int) -> None:
    """Prints what is graded, and how."""
    click.echo(heading(lab, term))
    click.echo(f"isolation: {jail.name if lab.functions else 'not needed, as nothing of the submission is executed'}; --seed {seed}")

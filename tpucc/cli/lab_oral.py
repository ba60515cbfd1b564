"""`tpucc lab oral N SUBMISSION -o SHEET.html`."""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.cli.lab_grading import beside, key_option, per_student_option, require_closed, require_keyed, seed_option, trust_option
from tpucc.cli.lab_shared import heading, require_there, term_option
from tpucc.cli.messages import say
from tpucc.cli.options import FILE
from tpucc.cli.places import keep_inputs
from tpucc.diagnostics import counted, printable
from tpucc.guest.jails import NONE
from tpucc.labs import find
from tpucc.labs.grading import isolated, random_seed
from tpucc.labs.lab import Term
from tpucc.labs.results import printable_lines
from tpucc.labs.submissions import Variants, key_of
from tpucc.output_files import write_file


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
    click.echo(heading(lab, variant))
    click.echo(f"isolation: {jail.name if lab.functions else 'not needed, as nothing of the submission is executed'}; --seed {seed}")
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

"""`tpucc asm FILE.asm -o PROGRAM.tpub`."""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.cli.options import FILE
from tpucc.cli.places import beside, keep_inputs
from tpucc.cli.resumed import read_text
from tpucc.diagnostics import Diagnostic, UsageError, counted, printable
from tpucc.isa.assembler import read_listing
from tpucc.isa.container import encode
from tpucc.isa.verify import check
from tpucc.options import Options
from tpucc.output_files import write_file
from tpucc.texts.resume import base_at, kind_of

_STAGES = {"graph": "a graph", "tile": "a tile program"}


@click.command("asm")
@click.argument("listing", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="PROGRAM.tpub", help="Where to write it (default: beside the listing).")
@click.option("--like", type=FILE, metavar="MODEL.tpu|PROGRAM.tpub", help="The model whose constants stand in LISTING by their digests.")
def command(listing: Path, output: Path | None, like: Path | None) -> None:
    """Assemble LISTING into a program. The verifier checks it before it is written."""
    place = output or beside(listing, ".tpub")
    keep_inputs(place)
    text = read_text(listing)
    if (kind := kind_of(text)) != "asm":
        mend = f"tpucc compile {printable(listing.name)} --like MODEL.tpu goes on from it"
        raise UsageError(
            Diagnostic("E0766", f"{printable(listing.name)} is {_STAGES[kind]} in text form, no machine program", help=(mend,))
        )
    known = None if like is None else base_at(like, Options()).constants
    program, places = read_listing(text.text, text.name, known)
    check(program, places)
    write_file(place, encode(program))
    click.echo(f"{printable(str(place))}: {counted(len(program.instructions), 'instruction')}")

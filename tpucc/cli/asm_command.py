"""`tpucc asm FILE.asm -o PROGRAM.tpub`."""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.cli.options import FILE
from tpucc.diagnostics import Diagnostic, ProgramError, counted
from tpucc.interop.files import read_file, write_file
from tpucc.isa.assembler import read_listing
from tpucc.isa.container import encode
from tpucc.isa.verify import check


@click.command("asm")
@click.argument("listing", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="PROGRAM.tpub", help="Where to write it (default: beside the listing).")
def command(listing: Path, output: Path | None) -> None:
    """Assemble LISTING into a program. The verifier checks it before it is written."""
    try:
        text = read_file(listing).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProgramError(Diagnostic("E0101", f"{listing.name} is not a text file: byte {error.start:,} is not UTF-8")) from None
    program, places = read_listing(text, listing.name)
    check(program, places)
    place = output or listing.with_suffix(".tpub")
    write_file(place, encode(program))
    click.echo(f"{place}: {counted(len(program.instructions), 'instruction')}")

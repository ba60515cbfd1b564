"""`tpucc asm FILE.asm -o PROGRAM.tpub`."""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.cli.options import FILE
from tpucc.cli.resumed import base_at, read_text
from tpucc.diagnostics import counted
from tpucc.interop.files import write_file
from tpucc.isa.assembler import read_listing
from tpucc.isa.container import encode
from tpucc.isa.verify import check
from tpucc.options import Options


@click.command("asm")
@click.argument("listing", type=FILE)
@click.option("-o", "--output", type=FILE, metavar="PROGRAM.tpub", help="Where to write it (default: beside the listing).")
@click.option("--like", type=FILE, metavar="MODEL.tpu|PROGRAM.tpub", help="The model whose constants stand in LISTING by their digests.")
def command(listing: Path, output: Path | None, like: Path | None) -> None:
    """Assemble LISTING into a program. The verifier checks it before it is written."""
    text = read_text(listing)
    known = None if like is None else base_at(like, Options()).constants
    program, places = read_listing(text.text, text.name, known)
    check(program, places)
    place = output or listing.with_suffix(".tpub")
    write_file(place, encode(program))
    click.echo(f"{place}: {counted(len(program.instructions), 'instruction')}")

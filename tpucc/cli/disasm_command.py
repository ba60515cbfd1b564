"""`tpucc disasm PROGRAM.tpub`."""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.cli.options import FILE, data_option
from tpucc.files import read_file
from tpucc.ir.codec import stamped
from tpucc.isa.assembler import disassemble
from tpucc.isa.container import decode
from tpucc.isa.verify import check_structure


@click.command("disasm")
@click.argument("program", type=FILE)
@data_option
def command(program: Path, with_data: bool) -> None:
    """Print the listing of PROGRAM; `tpucc asm --like PROGRAM` makes an equal program of it.

    With --with-data the listing says everything, and `tpucc asm` needs no --like.
    """
    read = decode(read_file(program), str(program))
    check_structure(read)
    click.echo(stamped(disassemble(read, with_data), ";"), nl=False)

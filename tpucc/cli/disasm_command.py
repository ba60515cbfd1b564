"""`tpucc disasm PROGRAM.tpub`."""

from __future__ import annotations

from pathlib import Path

import click

from tpucc.cli.options import FILE
from tpucc.interop.files import read_file
from tpucc.isa.container import decode
from tpucc.isa.disassembler import disassemble


@click.command("disasm")
@click.argument("program", type=FILE)
def command(program: Path) -> None:
    """Print the listing of PROGRAM; `tpucc asm` makes an equal program of it."""
    click.echo(disassemble(decode(read_file(program), str(program))), nl=False)

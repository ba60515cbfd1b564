"""The command line: finds the command, runs it, and turns errors into messages and exit statuses."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

COMMANDS = {
    "compile": "Compile a model; write its files and pictures; print a summary.",
    "run": "Execute a model or a program; optionally check it.",
    "judge": "One verdict: are the values right, is the program valid, how fast is it.",
    "profile": "Where the cycles go, per layer and in all, without executing.",
    "viz": "Draw one picture.",
    "report": "Write the self-contained page.",
    "watch": "Serve the page on this machine; compile again on every save.",
    "check": "Diagnostics only: what compile would refuse.",
    "asm": "Assemble a listing into a program.",
    "disasm": "Print the listing of a program.",
    "opt": "Run passes on a graph in text form.",
    "explain": "Explain an error code.",
    "ops": "The operators of the language.",
    "passes": "The passes, in their order.",
    "targets": "The machines.",
    "paper": "Our figures beside those of the TPU paper.",
    "systolic": "Data in waves through an array of elements, cycle by cycle.",
    "doctor": "What is installed, and which renderer will be used.",
}
"""Each command is the function `command` of a module of this package; importing it waits until it is called."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, so that `tpucc --help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"tpucc.cli.{cmd_name}_command").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from tpucc.diagnostics import did_you_mean, printable

            near = did_you_mean(args[0], COMMANDS)
            ctx.fail(f"no command is named {printable(args[0])}{f'; {near}' if near else ''}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="tpucc", message="tpucc %(version)s")
def group() -> None:
    """tpucc: a compiler that you can see through.

    Compiles a small neural network to the instructions of a TPU-v1-like machine, runs them bit for bit, and shows each step.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status; as an entry point, exits with it."""
    if arguments is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error has it: no arrow or µ is a fault where there is none
    status = _status(arguments)
    if arguments is None:
        _leave(status)
    return status


def _leave(status: int) -> NoReturn:
    """Ends the process, whatever threads code of the user's has left behind: Python would wait for them."""
    threads = sys.modules.get("threading")
    if threads and any(not thread.daemon for thread in threads.enumerate() if thread is not threads.main_thread()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _status(arguments: Sequence[str] | None) -> int:
    try:
        result = group.main(args=None if arguments is None else list(arguments), prog_name="tpucc", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit:
        return _failed(_ended_by_the_user(), arguments)
    except Exception as error:
        return _failed(error, arguments)


def _failed(error: Exception, arguments: Sequence[str] | None) -> int:
    try:
        from tpucc.cli.failures import report_failure

        return report_failure(error, sys.argv[1:] if arguments is None else list(arguments))
    except Exception as second:
        if second is error:  # TPUCC_DEBUG=1
            raise
        os.write(2, f"{error}\n".encode(errors="replace"))  # code of the user's took away what a message is made with
        return int(getattr(error, "exit_status", 5))


def _ended_by_the_user() -> Exception:
    """Nothing of tpucc's raises SystemExit: it comes from code of the user's that Python called, as in a property, and is no good end."""
    from tpucc.diagnostics import Diagnostic, PluginError

    text = "code of a pass or a stage raised SystemExit, which would end tpucc"
    return PluginError(Diagnostic("E0521", text, help=("return a result, or raise an exception",)))

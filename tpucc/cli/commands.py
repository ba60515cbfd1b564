"""The commands by name. Each is imported when it is called."""

from __future__ import annotations

import gc
import importlib

import click

COMMANDS = {
    "new": "Write a model with its data, to begin with.",
    "programs": "The programs that come with tpucc.",
    "compile": "Compile a model; write its files and pictures; print a summary.",
    "run": "Execute a model or a program; optionally check it.",
    "train": "Train a model; write its weights, its state and its history.",
    "judge": "One verdict: are the values right, is the program valid, how fast is it.",
    "compare": "Two compiles side by side: how many cycles more, where, and why.",
    "sweep": "Every combination of values: a table and a page.",
    "debug": "The machine step by step: forwards, back, breakpoints, memories.",
    "profile": "Where the cycles go, per layer and in all, without executing.",
    "viz": "Draw one picture.",
    "report": "Write the self-contained page.",
    "watch": "Serve the page on this machine; compile again on every save.",
    "check": "Diagnostics only: what compile would refuse.",
    "export": "Write a model as an ONNX file.",
    "asm": "Assemble a listing into a program.",
    "disasm": "Print the listing of a program.",
    "import": "Write the network of an ONNX file as a source.",
    "opt": "Run passes on the graph of a model, and print it.",
    "explain": "Explain an error code.",
    "ops": "The operators of the language.",
    "passes": "The passes, in their order.",
    "targets": "The machines.",
    "paper": "Our figures beside those of the TPU paper.",
    "systolic": "Data in waves through an array of elements, cycle by cycle.",
    "rtl": "The machine as hardware: a program on it, beside the simulator; Verilog.",
    "lab": "Coursework: begin a lab, check it, grade it.",
    "doctor": "What is installed, and what is missing.",
}
"""Each command is the function `command` of a module of this package; importing it waits until it is called."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, so that `tpucc --help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        gc.disable()
        try:
            command = importlib.import_module(f"tpucc.cli.{cmd_name}_command").command
        finally:
            gc.enable()
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

"""The options that every compiling command shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass
from pathlib import Path
from typing import Any

import click

from tpucc.driver import Options
from tpucc.passes.base import Pass, options_of
from tpucc.passes.pipeline import PASSES
from tpucc.passes.plugins import installed_passes, passes_of_file
from tpucc.target import load_target

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
FILE = click.Path(path_type=Path)
TYPES: Mapping[str, click.ParamType[Any]] = {"int": click.INT, "float": click.FLOAT, "str": click.STRING, "bool": click.BOOL}


def _pairs(form: str, example: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """Reads the values of an option that is written `NAME=VALUE`; of two with one name the last counts."""

    def read(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for text in values:
            name, equals, value = text.partition("=")
            if not equals or not name.strip():
                raise click.BadParameter(f"{text!r} is not {form}, as in {example}")
            pairs[name.strip()] = value.strip()
        return pairs

    return read


params_option = click.option(
    *("-D", "params"), multiple=True, metavar="NAME=VALUE", callback=_pairs("NAME=VALUE", "-D batch=8"), help="Set a param of the source."
)
target_option = click.option("--target", default="tpu_v1", show_default=True, metavar="NAME|FILE.toml", help="The machine to compile for.")
set_option = click.option(
    *("--set", "overrides"),
    multiple=True,
    metavar="FIELD=VALUE",
    callback=_pairs("FIELD=VALUE", "--set weight_bandwidth=136e9"),
    help="Change a number of the target.",
)
bits_option = click.option("--activation-bits", type=click.Choice(["8", "16"]), help="Width of quantised activations.")
like_option = click.option(
    "--like", type=FILE, metavar="MODEL.tpu|PROGRAM.tpub", help="The model that MODEL, the text of a stage, was printed from."
)
data_option = click.option("--with-data", is_flag=True, help="Write all constants into text forms, so that they read back alone.")


@dataclass(frozen=True)
class PassOption:
    """A field of a built-in pass as a command-line option: `--calibrate-method`."""

    step: str
    field: str

    @property
    def destination(self) -> str:
        return f"{self.step}.{self.field}".replace("-", "_").replace(".", "__")


def pass_options() -> dict[PassOption, tuple[Pass, Field[Any]]]:
    """Every option of every built-in pass."""
    found = {}
    for step in PASSES:
        for option in options_of(step):
            found[PassOption(step.name, option.name)] = (step, option)
    return found


class CoreCounts(click.ParamType[tuple[int, ...]]):
    """One number of cores, or several with commas between: `8`, `1,2,4,8`."""

    name = "numbers of cores"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if not all(word.isascii() and word.isdigit() and 0 < int(word) <= 10**9 for word in words):
            self.fail(f"{value!r} is not a number of cores, nor several like 1,2,4,8", param, ctx)
        return tuple(dict.fromkeys(int(word) for word in words))


one_count = click.option("--cores", type=click.IntRange(1), default=1, show_default=True, help="Cores that share the batch.")
several_counts = click.option(
    "--cores", type=CoreCounts(), default="1", show_default=True, metavar="N[,N…]", help="Cores that share the batch; several to compare."
)


def compile_options(function: Callable[..., Any], cores: Decorator = one_count) -> Callable[..., Any]:
    """Adds the options of compiling; the command then calls `options_from` with what it got. `cores` is the option of this name."""
    for decorate in reversed([*_decorators(), cores]):
        function = decorate(function)
    return function


def options_from(given: Mapping[str, Any], stop_after: str | None = None) -> Options:
    """The `Options` that the command line asks for. Loads targets and pass files: raises `UsageError`, `ProgramError`."""
    settings: dict[str, dict[str, object]] = {}
    for option in pass_options():
        value = given.get(option.destination)
        if value is not None:
            settings.setdefault(option.step, {})[option.field] = value
    brought = tuple(step for path in given["pass_files"] for step in passes_of_file(path))
    return Options(
        target=load_target(given["target"], given["overrides"]),
        params=given["params"],
        weights=given["weights"],
        calibration=given["calibrate"],
        level=int(given["level"]),
        extra=(*installed_passes(), *brought),
        settings=settings,
        omit=frozenset(given["omit"]),
        activation_bits=int(given["activation_bits"]) if given["activation_bits"] else None,
        cores=given["cores"],
        stop_after=stop_after,
    )


def _decorators() -> list[Decorator]:
    return [
        target_option,
        set_option,
        params_option,
        click.option("--weights", type=FILE, metavar="FILE.npz", help="Read the weights from here."),
        click.option("--calibrate", type=FILE, metavar="FILE.npz", help="Measure the activations' ranges on these inputs."),
        click.option("-O", "level", type=click.Choice(["0", "1", "2"]), default="2", show_default=True, help="How much to optimise."),
        click.option("--pass", "pass_files", type=FILE, multiple=True, metavar="FILE.py", help="Add the passes of this file."),
        click.option("--omit", multiple=True, metavar="PASS", help="Leave out an optional pass."),
        bits_option,
        *(_pass_option(option, step, definition) for option, (step, definition) in pass_options().items()),
    ]


def _pass_option(option: PassOption, step: Pass, definition: Field[Any]) -> Decorator:
    default = getattr(step, option.field)
    return click.option(
        f"--{option.step}-{option.field.replace('_', '-')}",
        option.destination,
        type=TYPES[type(default).__name__],
        default=None,
        help=f"{definition.metadata.get('help', f'Of the pass {option.step}')} (default {default}).",
    )

"""The options that every compiling command shares."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tpucc.options import OPTIONS, Flag, Options
from tpucc.passes.base import options_of as fields_of
from tpucc.passes.pipeline import PASSES
from tpucc.training.numerics import CHOICES
from tpucc.user_options import read_options

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class FileName(click.Path):
    """The name of a file or a folder. An empty one, as of a variable that isn't set, would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("the name is empty", param, ctx)
        return super().convert(value, param, ctx)


FILE = FileName(path_type=Path)
TYPES: Mapping[str, click.ParamType[Any]] = {"int": click.INT, "float": click.FLOAT, "str": click.STRING, "bool": click.BOOL}


def _pairs(flag: Flag) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """Reads the values of an option that is written `NAME=VALUE`; of two with one name the last counts, or they are refused."""
    names_file = flag.metavar is not None and "FILE" in flag.metavar

    def read(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
        pairs: dict[str, str] = {}
        for text in values:
            name, equals, value = text.partition("=")
            if not equals or not name.strip() or (names_file and not value.strip()):
                raise click.BadParameter(f"{text!r} is not {flag.metavar}, as in {flag.example}")
            name, value = name.strip(), value.strip()
            if flag.once and pairs.get(name, value) != value:
                raise click.BadParameter(f"{name} is given twice: {pairs[name]} and {value}; one of them can have its place")
            pairs[name] = value
        return pairs

    return read


def option(name: str) -> Decorator:
    """The command line's option for a keyword of `tpucc.compile`."""
    row = OPTIONS[name]
    flag = row.flag
    assert flag is not None
    kinds: dict[str, dict[str, Any]] = {
        "text": {},
        "names": {"multiple": True},
        "file": {"type": FILE},
        "files": {"type": FILE, "multiple": True},
        "pairs": {"multiple": True, "callback": _pairs(flag)},
        "choice": {"type": click.Choice(flag.choices)},
        "count": {"type": click.IntRange(1)},
        "seconds": {"type": click.FloatRange(0, min_open=True)},
        "switch": {"is_flag": True},
    }
    shown: dict[str, Any] = {"default": row.default, "show_default": True} if isinstance(row.default, int | float | str) else {}
    return click.option(flag.name, name, metavar=flag.metavar, help=row.help, **shown, **kinds[flag.form])


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result, or what is wrong, as JSON.")
like_option = click.option(
    "--like", type=FILE, metavar="MODEL.tpu|PROGRAM.tpub", help="The model that MODEL, the text of a stage, was printed from."
)
data_option = click.option("--with-data", is_flag=True, help="Write all constants in full into text forms, which then need no model.")


@dataclass(frozen=True)
class PassOption:
    """A field of a built-in pass as a command-line option: `--calibrate-method`."""

    step: str
    field: str

    @property
    def destination(self) -> str:
        return f"{self.step}.{self.field}".replace("-", "_").replace(".", "__")


def pass_options() -> dict[PassOption, object]:
    """Every option of every built-in pass, with its default."""
    return {PassOption(step.name, name): default for step in PASSES for name, default in fields_of(step).items()}


class CoreCounts(click.ParamType[tuple[int, ...]]):
    """One number of cores, or several with commas between: `8`, `1,2,4,8`."""

    name = "numbers of cores"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in str(value).split(",")]
        if not all(word.isascii() and word.isdigit() and len(word) < 11 and 0 < int(word) <= 10**9 for word in words):
            self.fail(f"{value!r} is not a number of cores, nor several like 1,2,4,8", param, ctx)
        return tuple(dict.fromkeys(int(word) for word in words))


several_counts = click.option(
    "--cores", type=CoreCounts(), default="1", show_default=True, metavar="N[,N…]", help="Cores that share the batch; several to compare."
)


def numerics_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the choices of a step of training: `--activations`, `--statistics`."""
    for name, values in reversed([*CHOICES.items()]):
        default, *others = values
        words = "; ".join(f"{value}: {values[value]}" for value in others)
        function = click.option(f"--{name}", type=click.Choice([*values]), default=default, show_default=True, help=f"{words}.")(function)
    return function


def refuse_given(is_refused: Callable[[str], bool], why: str) -> None:
    """Raises `UsageError` where the command line gives an option whose parameter is refused by its name; `why` follows the option."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        if is_refused(name) and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} {why}")


def refuse_step_options() -> None:
    """Raises `UsageError` for the options of `numerics_options` without `--train`."""
    refuse_given(CHOICES.__contains__, "is of a step of training, which --train asks for")


def refuse_unused(used: Collection[str], asking: str = "--train") -> None:
    """Raises `UsageError` for options that mean nothing for a step of training, which the option `asking` asks for: for all but `used`."""
    refuse_given(lambda name: name not in used, f"has no effect on a step of training, which {asking} asks for")


def compile_options(function: Callable[..., Any], **others: Decorator) -> Callable[..., Any]:
    """Adds the options of compiling; the command then calls `options_from` with what it got. `others` take the place of the options of
    their names."""
    decorators = [others.get(name) or option(name) for name, row in OPTIONS.items() if row.flag is not None]
    decorators += [_pass_option(of_pass, default) for of_pass, default in pass_options().items()]
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def options_from(given: Mapping[str, Any], stop_after: str | None = None) -> Options:
    """The `Options` that the command line asks for. Loads targets and files of passes and stages: raises `UsageError`, `ProgramError` and
    `PluginError`."""
    asked = {name: given[name] for name in OPTIONS if given.get(name) is not None}
    return replace(read_options({**asked, "settings": settings_of(given)}), stop_after=stop_after)


def settings_of(given: Mapping[str, Any]) -> dict[str, dict[str, object]]:
    """The options of passes that the command line gives, by the pass's name."""
    settings: dict[str, dict[str, object]] = {}
    for of_pass in pass_options():
        if (value := given.get(of_pass.destination)) is not None:
            settings.setdefault(of_pass.step, {})[of_pass.field] = value
    return settings


def _pass_option(of_pass: PassOption, default: object) -> Decorator:
    return click.option(
        f"--{of_pass.step}-{of_pass.field.replace('_', '-')}",
        of_pass.destination,
        type=TYPES[type(default).__name__],
        default=None,
        help=f"Of the pass {of_pass.step} (default {default}).",
    )

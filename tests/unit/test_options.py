"""The one list of options: command line, keywords and the words of a command agree with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

import tpucc
from tests.support.cases import each
from tpucc.cli.compile_command import command
from tpucc.cli.options import options_from
from tpucc.ir import Graph
from tpucc.options import OPTIONS, Keywords, Options
from tpucc.passes.base import Context, graph_pass
from tpucc.plugins.guarded_pass import GuardedPass
from tpucc.user_options import changed, command_words, options_of, read_options

PASS = "class Mine:\n    name = 'mine'\n    summary = 'does nothing'\n    def run(self, graph, context):\n        return graph\n"
STAGE = "def order(tiles):\n    return range(len(tiles))\n"


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """A value for each option, as the command line gives it, other than its default."""
    (tmp_path / "mine.py").write_text(PASS)
    (tmp_path / "order.py").write_text(STAGE)
    return {
        "target": "tiny",
        "overrides": {"mxu": "8"},
        "params": {"batch": "8"},
        "weights": tmp_path / "w.npz",
        "calibration": tmp_path / "c.npz",
        "level": 1,
        "passes": (tmp_path / "mine.py",),
        "omit": ("fuse-bias",),
        "include": ("fold-scales",),
        "stages": {"order": str(tmp_path / "order.py")},
        "plugin_timeout": 5.0,
        "trust": True,
        "activation_bits": 16,
        "keep": {"fc1": "host"},
        "cores": 2,
        "goal": "stream",
        "settings": {"calibrate": {"method": "percentile"}},
    }


def test_each_option_has_its_flag_on_the_command_line() -> None:
    flags = {parameter.name: parameter.opts[0] for parameter in command.params}
    assert {name: flags[name] for name, option in OPTIONS.items() if option.flag} == {
        name: option.flag.name for name, option in OPTIONS.items() if option.flag
    }


def test_the_words_of_a_command_ask_for_the_same_options(given: dict[str, Any]) -> None:
    assert tuple(given) == tuple(OPTIONS), "a value for each option"
    words = [*command_words(given)]
    parsed = command.make_context("compile", ["m.tpu", *words]).params
    made, wanted = options_from(parsed), read_options(given)
    for name in Options.__dataclass_fields__:
        if name not in ("passes", "stages"):  # those of files are other objects each time
            assert getattr(made, name) == getattr(wanted, name), name
            assert name in ("stop_after", "limits") or getattr(made, name) != getattr(Options(), name), name
    assert [step.name for step in made.passes] == [step.name for step in wanted.passes] == ["mine"]
    assert list(made.stages.replaced) == list(wanted.stages.replaced) == ["order"]


def test_no_words_ask_for_the_defaults() -> None:
    assert options_from(command.make_context("compile", ["m.tpu"]).params) == Options() == options_of()
    assert [*command_words({name: option.default for name, option in OPTIONS.items()})] == []


def test_numbers_of_the_machine_change_its_own() -> None:
    options = options_of(target="tiny", level=1)
    wider = changed(options, overrides={"mxu": 8}, cores=2)
    assert (wider.target.name, wider.target.mxu, wider.level, wider.cores) == ("tiny (mxu=8)", 8, 1, 2)


@each(
    [
        ({"levle": 1}, "compiling has no keyword levle\nhelp: did you mean level?"),
        ({"for": "stream"}, "compiling has no keyword for\nhelp: did you mean goal?"),
        ({"weights": ""}, "weights is the path of a file, found an empty text"),
        ({"stages": {"order": STAGE}}, "stages is a tpucc.Stages, found dict\nhelp: tpucc.Stages(allocate=mine)"),
        ({"plugin_timeout": 0}, "plugin_timeout is a number of seconds above 0, found 0"),
        ({"activation_bits": 4}, "activations have 8 or 16 bits, found 4"),
        ({"keep": {"fc1": "16"}}, "fc1 can't be kept as 16"),
        ({"goal": "speed"}, "speed"),
    ]
)
def test_what_no_option_can_be_is_refused(asked: Keywords, words: str) -> None:
    with pytest.raises(tpucc.UsageError) as caught:
        options_of(**asked)
    assert words in str(caught.value)


def test_an_option_left_out_is_its_default() -> None:
    asked: Any = dict.fromkeys(OPTIONS)
    assert options_of(**asked) == Options()


def test_pairs_say_how_they_are_written() -> None:
    for option in OPTIONS.values():
        if option.flag and option.flag.form == "pairs":
            with pytest.raises(click.BadParameter, match=f"as in {option.flag.example}"):
                command.make_context("compile", ["m.tpu", option.flag.name, "text"])


def test_passes_of_the_users_are_guarded() -> None:
    @graph_pass("mine", "does nothing", level=0)
    def mine(graph: Graph, context: Context) -> Graph:
        return graph

    (step,) = options_of(passes=(mine,), plugin_timeout=3).passes
    assert isinstance(step, GuardedPass)
    assert (step.name, step.code.place.partition(":")[0]) == ("mine", Path(__file__).name)

"""Options as a user gives them: with passes and stages of their own, from Python or as the words of a command; and those words again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from tpucc import options
from tpucc.options import OPTIONS, SECONDS, Keywords, Options
from tpucc.plugins.brought import brought
from tpucc.plugins.installed import installed_passes
from tpucc.target import Target


def options_of(**asked: Unpack[Keywords]) -> Options:
    """As `tpucc.options.options_of`; passes of the user's become `GuardedPass`es. Raises `PluginError` for one that can't be read."""
    made = options.options_of(**asked)
    return replace(made, passes=tuple(map(brought, made.passes)))


def read_options(given: Mapping[str, Any], *, installed: bool = True) -> Options:
    """The options that a command line asks for: params are texts, passes and stages are files, which are executed.

    Passes of installed packages join those of files if they are `installed`. Raises as `options_of`, and `PluginError`.
    """
    passes, stages = [*installed_passes()] if installed else [], None
    if given.get("passes") or given.get("stages"):
        from tpucc.guest.files import (
            passes_of_file,  # with stages_of_files a third of the time that `tpucc check` takes
            stages_of_files,
        )

        seconds, trust = given.get("plugin_timeout") or SECONDS, bool(given.get("trust"))
        passes += (step for path in given.get("passes") or () for step in passes_of_file(Path(path), seconds, trust=trust))
        files = {stage: Path(file) for stage, file in (given.get("stages") or {}).items()}
        stages = stages_of_files(files, seconds, trust=trust) if files else None
    made = options_of(**{**given, "params": {}, "passes": tuple(passes), "stages": stages})
    return replace(made, params=given.get("params") or {})


def changed(options: Options, **asked: Unpack[Keywords]) -> Options:
    """`options` with what these keywords ask for in their place; numbers of the machine change those of its own. Raises as `options_of`."""
    if "overrides" in asked:
        asked.setdefault("target", options.target)
    made = options_of(**asked)
    return replace(options, **{name: getattr(made, name) for name in asked if name != "overrides"})


def command_words(given: Mapping[str, Any]) -> Iterator[str]:
    """What was given to `read_options`, as the words of a command; without what is so by default."""
    for name, option in OPTIONS.items():
        value = given.get(name)
        if value is None or value == option.default or option.flag is None:
            continue
        flag = option.flag.name
        if name == "target" and isinstance(value, Target):
            value = value.name
        if option.flag.form == "switch":
            yield flag
        elif isinstance(value, Mapping):
            yield from (word for key, part in value.items() for word in (flag, f"{key}={part}"))
        elif isinstance(value, tuple | list | set | frozenset):
            yield from (word for part in value for word in (flag, str(part)))
        else:
            yield from [f"{flag}{value}"] if name == "level" else [flag, str(value)]
    for step, settings in (given.get("settings") or {}).items():
        yield from (word for setting, value in settings.items() for word in (f"--{step}-{setting.replace('_', '-')}", str(value)))


def flag_of(keyword: str) -> str:
    """What asks for a keyword on the command line."""
    flag = OPTIONS[keyword].flag
    assert flag is not None
    return flag.name

"""The verdict on a puzzle's solution: its text is read, verified, run on fresh numbers and compared; where it fails, why.

Nothing of a solution is Python: no process is needed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom

import numpy as np

from tpucc.diagnostics import Diagnostic, Error, ProgramError, Source, Span, counted, listed, printable
from tpucc.isa.assembler import read_listing
from tpucc.isa.effects import effects, resolve
from tpucc.isa.listing.lines import ListingSpans
from tpucc.isa.program import Program
from tpucc.isa.verify import RULES, Violation, verify
from tpucc.labs.listings import not_plain
from tpucc.labs.puzzles.setting import Setting, Task
from tpucc.lowering.tiletext import read_tiles
from tpucc.lowering.verify import verify_tiles
from tpucc.machines.v1 import Engine, Opcode
from tpucc.numerics import AnyArray, DeviceInts
from tpucc.runtime.judge import maker_of
from tpucc.schedule.pipeline import schedule
from tpucc.sim.interpret import Interpreter
from tpucc.sim.timing import time_program

_REASONS: dict[str, str] = tomllib.loads(Path(__file__).with_name("reasons.toml").read_text("utf-8"))
WHY = {code: " ".join(text.split()) for code, text in _REASONS.items()}
"""What a rule or an error means, by its code, and how a limit is kept, by what it limits."""
ROUNDS = 2
"""How often numbers are drawn."""
HEAD = Span(1, 1, 1, 2)
"""Where a finding is that is of no line."""
_SHOWN = re.compile(r"instruction (?P<number>[\d,]+) `[^`]*`")
_TILE = re.compile(r"tile instruction [\d,]+ (`[^`]*` )?")


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """What is found out about a solution. `right`: it computes the goal; `solved`: within the puzzle's limits too.

    `line` is the line of the text that the message is about, or 0. `given`, `expected` and `found` are the values of a wrong output.
    `program` is what was run; None where the text has no valid program.
    """

    title: str
    right: bool
    solved: bool
    message: str
    why: str = ""
    line: int = 0
    given: str = ""
    expected: str = ""
    found: str = ""
    instructions: int = 0
    cycles: int = 0
    program: Program | None = None

    def __str__(self) -> str:
        head = f"{self.title}: {'solved' if self.solved else 'not solved'}"
        values = (("given:", self.given), ("expected:", self.expected), ("found:", self.found))
        told = (f"{name:<10}{text}" for name, text in values if text)
        return "\n".join(filter(None, (head, self.message, self.why, *told)))

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Solution:
    """A solution that was read: its machine program, and the line of each instruction, 0 where the text has none for it.

    `written` are the instructions that the text has.
    """

    program: Program
    lines: tuple[int, ...]
    written: int


class Wrong(Exception):
    """A solution that is wrong. `values` are what was given, expected and found."""

    def __init__(self, message: str, why: str = "", line: int = 0, values: tuple[str, str, str] = ("", "", "")) -> None:
        super().__init__(message)
        self.message, self.why, self.line, self.values = message, why, line, values


def judged(puzzle: Task, text: str, seed: int | None = None) -> Verdict:
    """The verdict on a text, on numbers that `seed` draws, or on some that nobody knows before."""
    draw = Random(SystemRandom().randrange(2**32) if seed is None else seed)
    program: Program | None = None
    try:
        _require_plain(puzzle, text)
        for _ in range(ROUNDS):
            setting = puzzle.draw(draw)
            solution = _read(puzzle, setting, text)
            _require_valid(solution, text)
            program = solution.program
            _require_goal(setting, solution, text)
    except Wrong as wrong:
        return Verdict(puzzle.title, False, False, wrong.message, wrong.why, wrong.line, *wrong.values, program=program)
    return _within(puzzle, solution)


def _require_plain(puzzle: Task, text: str) -> None:
    """Instructions, and only the directives that the puzzle leaves to the student. Raises `Wrong`."""
    if (found := not_plain(text, "puzzle", puzzle.directives)) is not None:
        raise Wrong(found[1], line=found[0])


def _read(puzzle: Task, setting: Setting, text: str) -> Solution:
    """The machine program of a text, which stands before the puzzle's directives so that it keeps its line numbers. Raises `Wrong`."""
    whole = text.rstrip("\n") + "\n" + setting.directives(puzzle.target_line)
    try:
        if puzzle.kind == "asm":
            program, places = read_listing(whole, puzzle.file)
            return Solution(program, _lines(places), len(places.spans))
        tiles, places = read_tiles(whole, puzzle.file)
        verify_tiles(tiles, places)
        program = schedule(tiles)
        return Solution(program, _scheduled_lines(tiles.instructions["opcode"], program, _lines(places)), len(places.spans))
    except ProgramError as error:
        raise _unread(error.diagnostics[0], text) from None
    except Error as error:
        raise Wrong(f"{error.diagnostics[0].code}: {error.diagnostics[0].message}") from None


def _lines(places: ListingSpans) -> tuple[int, ...]:
    """The line of each instruction of a text."""
    return tuple(0 if span is None else span.line for span in places.spans)


def _scheduled_lines(opcodes: AnyArray, program: Program, lines: tuple[int, ...]) -> tuple[int, ...]:
    """The lines of a scheduled program's instructions. Those of the activation unit keep their order, and no other is there."""
    activation = (Opcode.ACTIVATE, Opcode.VECTOR, Opcode.POOL, Opcode.SET_CONFIGURATION)
    own = iter([lines[index] for index in np.flatnonzero(np.isin(opcodes, activation)).tolist()])
    return tuple(next(own, 0) if opcode in activation else 0 for opcode in program.instructions["opcode"].tolist())


def _unread(found: Diagnostic, text: str) -> Wrong:
    """A line that can't be read, or that the checker of tile programs refuses."""
    line = found.span.line if found.span and found.span != HEAD and _code(found.span.line, text) else 0
    message = _TILE.sub("", found.message, count=1) if line else found.message
    told = [text for text in found.help[:1] if not text.startswith("the instructions are")]  # the handout names fewer
    why = "\n".join(part for part in (WHY.get(found.code, ""), *told) if part)
    return Wrong(f"{found.code}: {f'{_at(line, text)}: ' if line else ''}{message}", why, line)


def _at(line: int, text: str) -> str:
    """A line as messages show it."""
    return f"line {line} `{_code(line, text)}`"


def _code(line: int, text: str) -> str:
    """What stands in a line before its comment; nothing for a line that isn't there."""
    return printable(Source("", text).line(line).split(";")[0].strip()) if line <= text.count("\n") + 1 else ""


def _require_valid(solution: Solution, text: str) -> None:
    """The verifier's first finding that is of a line, or else the first, in words that name lines. Raises `Wrong`."""
    every = verify(solution.program)
    if not every:
        return
    found = next((each for each in every if each.instruction >= 0), every[0])

    def line(match: re.Match[str]) -> str:
        return _at(_line(solution, int(match["number"].replace(",", ""))), text)

    why = f"{WHY.get(found.code) or RULES[found.code].description}{_meeting(solution.program, found)}"
    raise Wrong(f"{found.code}: {_SHOWN.sub(line, found.message)}", why, _line(solution, found.instruction))


def _line(solution: Solution, instruction: int) -> int:
    return solution.lines[instruction] if 0 <= instruction < len(solution.lines) else 0


def _meeting(program: Program, found: Violation) -> str:
    """Which engines meet in a race."""
    if found.other < 0 or not found.code.startswith("V08"):
        return ""
    engines = effects(program.instructions).engine
    later, earlier = (Engine(int(engines[index])).name.lower() for index in (found.instruction, found.other))
    return f" Here the {later} engine may start before the {earlier} engine has finished."


def _require_goal(setting: Setting, solution: Solution, text: str) -> None:
    """The outputs, compared with the goal. Raises `Wrong` with the first wrong value and the instruction that made it."""
    outputs = Interpreter(solution.program).run(setting.inputs)
    for name, goal in setting.goal.items():
        found = outputs[name]
        for index in zip(*(axis.tolist() for axis in np.nonzero(found != goal)), strict=True):
            made = maker_of(solution.program, name, index)
            line = _line(solution, made.instruction) if made else 0
            maker = _at(line, text) if line else f"`{made.text}`" if made else "no instruction"
            values = _values(setting.inputs), _values({name: goal}), _values({name: found})
            sums = _sums(solution, made.instruction) if made else ""
            message = f"{name}[{index[0]}, {index[1]}] is {found[index]}, expected {goal[index]}\n{maker} made it{sums}"
            raise Wrong(message, line=line, values=values)


def _sums(solution: Solution, activation: int) -> str:
    """The lines of the multiplies whose sums an instruction activates, each with the tile that was in use; nothing of another instruction,
    and of a scheduled program, whose multiplies have no lines."""
    records = solution.program.instructions
    touched = effects(records)
    sums, tiles = touched.sums, resolve(records, touched).tile
    rows = set(sums.rows(activation).tolist()) if sums.only_reads[activation] else set()
    found: list[int] = []
    for index in np.flatnonzero(sums.writes[:activation])[::-1].tolist():
        if not rows.isdisjoint(written := sums.rows(index).tolist()):
            found.insert(0, index)
            rows.difference_update(() if sums.reads[index] else written)
    if not found or not all(solution.lines[index] for index in found):
        return ""
    named = [f"{solution.lines[index]} (tile {tiles[index]})" for index in found]
    return f" of the sums of {'lines' if len(named) > 1 else 'line'} {listed(named)}"


def _values(arrays: Mapping[str, DeviceInts]) -> str:
    """Matrices as text: `x = [[1, 2], [3, 4]]`."""
    return ", ".join(f"{name} = {values.tolist()}" for name, values in arrays.items())


def _within(puzzle: Task, solution: Solution) -> Verdict:
    """The verdict on a program that computes the goal."""
    cycles = time_program(solution.program).makespan
    fetches = int(effects(solution.program.instructions).pushes.sum())
    used, problem, why = {"instruction": solution.written, "cycle": cycles, "fetched tile": fetches}, "", ""
    for name, most in puzzle.most.items():
        if used[name] > most:
            problem, why = f"the outputs are right, but the program has {used[name]:,} {name}s, and {most:,} are allowed", WHY[f"{name}s"]
    if puzzle.keeps and (line := _changed(puzzle, solution)) is not None:
        problem, why = "the outputs are right, but more than waits was changed", f"the given program's instruction is `{line}`"
    same = "as few as the best known" if solution.written == puzzle.best else f"the best known has {puzzle.best}"
    fewer = "fewer than the best known: tell us" if solution.written < puzzle.best else same
    size = f"{counted(solution.written, 'instruction')}, {fewer}; {counted(cycles, 'cycle')}"
    return Verdict(
        puzzle.title, True, not problem, problem or size, why, instructions=solution.written, cycles=cycles, program=solution.program
    )


def _changed(puzzle: Task, solution: Solution) -> str | None:
    """The first instruction of the given text that isn't one of the solution's, in its place among those that aren't waits."""
    given = read_listing(puzzle.text + puzzle.draw(Random(0)).directives(puzzle.target_line), puzzle.file)[0].instructions
    own = solution.program.instructions
    left, right = (code[~np.isin(code["opcode"], (Opcode.SYNCHRONIZE, Opcode.SYNCHRONIZE_HOST))] for code in (given, own))
    lines: Callable[[int], str] = [line.strip() for line in puzzle.text.splitlines() if line.strip() and line.strip()[0] != ";"].__getitem__
    for index, record in enumerate(left):
        if index >= len(right) or right[index] != record:
            return lines(index)
    return "halt" if len(right) > len(left) else None

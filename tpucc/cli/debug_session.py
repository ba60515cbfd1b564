"""The commands of `tpucc debug`, and their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tpucc.diagnostics import counted, did_you_mean, listed, printable
from tpucc.explain.debugger import Debugger
from tpucc.explain.tables import wrapped
from tpucc.isa.listing.instructions import instruction_text
from tpucc.machine.machine import Machine
from tpucc.numerics import AnyArray

SHORT = {"s": "step", "c": "continue", "b": "break", "p": "print", "w": "where", "q": "quit", "?": "help"}
MOST_ROWS = 64
SHOWN_STEPS = 20
"""Instructions of one `step` that are printed."""
STALL = "stall"
HELP = """\
step [N]            execute the next instruction, or the next N
back [N]            take back the last instruction, or the last N
continue            run to the next breakpoint, or to the end
break LINE          stop where instructions of this line of the source begin
break LAYER         stop where instructions of this layer begin
break stall         stop before each multiply that the matrix unit waits for
break               list the breakpoints; `clear` takes them all away
{memories}
print fifo          tiles in the FIFO and on the way; tile and block in use
where               what comes next, when, whose it is, and what it waits for
quit                end; so does the end of the input
s, c, b, p, w, q and ? stand for step, continue, break, print, where, quit and
help."""


def help_text(machine: Machine) -> str:
    """The commands, with the memories of a machine."""
    lines = [f"print {each.name} ROW [N]".ljust(20) + f"N rows of the {each.title} (1 to {MOST_ROWS})" for each in machine.memories]
    return HELP.format(memories="\n".join(lines))


class Wrong(Exception):
    """A command that is none, or can't be done; the text says why."""


class Done(Exception):
    """The session is over."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where `continue` stops: at a line of the source, at a layer, or at each stall."""

    line: int = 0
    layer: str = ""

    def __str__(self) -> str:
        return f"line {self.line}" if self.line else f"layer {self.layer}" if self.layer else STALL

    def stops(self, debugger: Debugger, index: int) -> bool:
        """Whether to stop before an instruction; of a line or layer, before the first of several of one layer."""
        if not self.line and not self.layer:
            return bool(debugger.stalls(index))
        return self._owns(debugger, index) and not (index and debugger.layer_of(index - 1) is debugger.layer_of(index))

    def _owns(self, debugger: Debugger, index: int) -> bool:
        layer = debugger.layer_of(index)
        return layer is not None and (self.line in layer.origin.lines if self.line else layer.name == self.layer)


class Session:
    """A debugger with its breakpoints."""

    def __init__(self, debugger: Debugger) -> None:
        self.debugger = debugger
        self.breakpoints: list[Breakpoint] = []
        self._commands: Mapping[str, Callable[[list[str]], str]] = {
            "step": self._step,
            "back": self._back,
            "continue": self._continue,
            "break": self._break,
            "clear": self._clear,
            "print": self._print,
            "where": lambda words: self.where(),
            "help": lambda words: help_text(debugger.program.machine),
            "quit": self._quit,
        }

    def answer(self, line: str) -> str:
        """Does what a line asks for. The beginning of a command's name is enough. Raises `Wrong` and `Done`."""
        words = line.split()
        if not words or words[0].startswith("#"):
            return ""
        found = [name for name in self._commands if name.startswith(SHORT.get(words[0], words[0]))]
        if len(found) != 1:
            mend = did_you_mean(words[0], self._commands) or "`help` lists the commands"
            raise Wrong(f"there is no command {printable(words[0])}; {mend}" if not found else f"{words[0]} may be {' or '.join(found)}")
        return self._commands[found[0]](words[1:])

    def where(self) -> str:
        """What comes next: the instruction, its time, its layer and line, and what it waits for."""
        debugger = self.debugger
        count = len(debugger.program.instructions)
        if debugger.at_end:
            return f"all {counted(count, 'instruction')} are executed, in {debugger.runtime.timeline.makespan:,} cycles"
        return "\n".join([f"next, {debugger.position:,} of {count:,}:", *self._described(debugger.position)])

    def _described(self, index: int) -> Iterator[str]:
        debugger, times = self.debugger, self.debugger.runtime.timeline
        program, layer = debugger.program, debugger.layer_of(index)
        start, end = int(times.start[index]), int(times.end[index])
        spent = f"cycles {start:,} to {end:,}" if end > start else f"cycle {start:,}"
        yield wrapped(f"{index:>5,}  {instruction_text(program.machine, program.instructions[index])}  ({spent})", "       ")
        yield wrapped(f"       {debugger.instruction(index)}", "       ")
        if layer is not None:
            lines = program.source_text.split("\n")
            text = lines[layer.origin.line - 1].strip() if 0 < layer.origin.line <= len(lines) else ""
            yield wrapped(printable(f"       for {layer.name}" + (f", line {layer.origin.line}: {text}" if text else "")), "       ")
        for wait in debugger.waits(index):
            yield wrapped(f"       before it, its unit waits {counted(wait.end - wait.start, 'cycle')} for {wait.words}", "       ")

    def _step(self, words: Sequence[str]) -> str:
        count = self._count(words, "instructions")
        if self.debugger.at_end:
            raise Wrong("there is no instruction left; `back` takes some back")
        first = self.debugger.position
        while count and not self.debugger.at_end:
            self.debugger.step()
            count -= 1
        return self._moved(range(first, self.debugger.position))

    def _moved(self, done: range) -> str:
        """The instructions that were executed, as far as they are shown, and what comes next."""
        shown = done[-SHOWN_STEPS:]
        left = [f"({counted(len(done) - len(shown), 'instruction')} before these)"] if len(shown) < len(done) else []
        each = [line for index in shown for line in (self._described(index) if len(done) == 1 else [self._brief(index)])]
        return "\n".join([*left, *each, self._next()])

    def _next(self) -> str:
        if self.debugger.at_end:
            return self.where()
        return f"next:\n{self._brief(self.debugger.position)}"

    def _brief(self, index: int) -> str:
        layer = self.debugger.layer_of(index)
        owner = f"  [{printable(layer.name)}]" if layer is not None else ""
        return wrapped(
            f"{index:>5,}  {instruction_text(self.debugger.program.machine, self.debugger.program.instructions[index])}{owner}", "       "
        )

    def _back(self, words: Sequence[str]) -> str:
        count = self._count(words, "instructions")
        if not self.debugger.position:
            raise Wrong("nothing is executed yet")
        self.debugger.back(count)
        return self.where()

    def _continue(self, words: Sequence[str]) -> str:
        debugger = self.debugger
        if debugger.at_end:
            raise Wrong("there is no instruction left; `back` takes some back")
        debugger.step()
        while not debugger.at_end:
            if hit := next((each for each in self.breakpoints if each.stops(debugger, debugger.position)), None):
                return f"at {hit}\n{self.where()}"
            debugger.step()
        return self.where()

    def _break(self, words: Sequence[str]) -> str:
        if words:
            self.breakpoints.append(self._breakpoint(" ".join(words)))
        listed = "\n".join(f"stops at {each}" for each in self.breakpoints)
        return listed or "there are no breakpoints"

    def _breakpoint(self, words: str) -> Breakpoint:
        layers = self.debugger.program.layers
        if words == STALL:
            return Breakpoint()
        if any(layer.name == words for layer in layers):
            return Breakpoint(layer=words)
        line = _number(words)
        if line is None:
            names = [STALL, *(layer.name for layer in layers)]
            raise Wrong(f"no layer is named {printable(words)}; {did_you_mean(words, names) or 'give a layer, a line or `stall`'}")
        lines = sorted({line for layer in layers for line in layer.origin.lines})
        if line not in lines:
            raise Wrong(f"no layer comes from line {line}; layers come from lines {', '.join(map(str, lines))}")
        return Breakpoint(line=line)

    def _clear(self, words: Sequence[str]) -> str:
        self.breakpoints.clear()
        return "there are no breakpoints"

    def _print(self, words: Sequence[str]) -> str:
        memories: Mapping[str, AnyArray] = self.debugger.interpreter.memories.rows
        if words and words[0] == "fifo":
            return self._fifo()
        if not words or words[0] not in memories:
            raise Wrong(f"print what? {listed([*(f'`print {name} ROW [N]`' for name in memories), '`print fifo`'], 'or')}")
        memory, name = memories[words[0]], words[0]
        if len(words) < 2:
            raise Wrong(f"which row? {name} has rows 0 to {len(memory) - 1:,}")
        row, count = _number(words[1]), self._count(words[2:], "rows", MOST_ROWS)
        if row is None or row >= len(memory):
            raise Wrong(f"{printable(words[1])} is no row: {name} has rows 0 to {len(memory) - 1:,}")
        rows = range(row, min(row + count, len(memory)))
        end = [f"{name} ends with row {rows[-1]:,}: it has {len(rows):,} of the {count:,} rows"] if len(rows) < count else []
        return "\n".join([*(line for each in rows for line in self._row(name, each, memory[each])), *end])

    def _row(self, name: str, row: int, values: AnyArray) -> Iterator[str]:
        residents = self.debugger.residents_of(row) if name == self.debugger.program.machine.values.name else ()
        owners = ", ".join(f"row {row - each.start:,} of {each.name}" for each in residents)
        yield printable(f"{name} {row:,}" + (f"  ({owners})" if owners else ""))
        yield wrapped(f"  {_numbers(values)}", "  ")

    def _fifo(self) -> str:
        interpreter = self.debugger.interpreter
        now, arrivals = self.debugger.now, self.debugger.arrivals()
        there = ", ".join(tile for tile, arrives in arrivals if arrives <= now) or "none"
        coming = ", ".join(f"{tile} (arrives in cycle {arrives:,})" for tile, arrives in arrivals if arrives > now)
        on_way = wrapped(f"on the way, in cycle {now:,}: {coming}", "  ") if coming else ""
        used = [self.debugger.tile or "no tile yet"]
        if self.debugger.program.machine.register is not None:
            used.append(f"parameter block {interpreter.block:,}" if interpreter.block >= 0 else "no parameter block yet")
        return "\n".join(filter(None, (f"in the FIFO: {there}", on_way, f"in use: {', '.join(used)}")))

    def _quit(self, words: Sequence[str]) -> str:
        raise Done

    def _count(self, words: Sequence[str], what: str, most: int = 10**9) -> int:
        """A count that may be left out."""
        count = _number(words[0]) if words else 1
        if count is None or not 1 <= count <= most:
            raise Wrong(f"{printable(words[0])} is no number of {what}: give one from 1 to {most:,}")
        return count


def _number(word: str) -> int | None:
    """A number without a sign; None for any other word."""
    return int(word) if word.isascii() and word.isdigit() and len(word) <= 12 else None


def _numbers(values: AnyArray) -> str:
    """Lane by lane from 0 on; four and more equal ones in a row as `252 × -128`."""
    words = []
    for value, group in groupby(map(str, values)):
        count = len(list(group))
        words += [f"{count} × {value}"] if count > 3 else [value] * count
    return " ".join(words)

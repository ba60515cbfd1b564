"""The machine verifier: only programs that pass it are executed.

`verify` gives the violations of a program, `check` raises them. There are ten groups of rules, each in a file or sharing one; `RULES` has
them all. The groups build on each other. If a program's parts don't fit, its records aren't read. If records aren't instructions, their
rows aren't checked. If rows lie outside the memories, their history isn't checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from tpucc.diagnostics import Diagnostic, Label, ProgramError, Source
from tpucc.isa.listing.lines import ListingSpans, with_numbering
from tpucc.isa.program import Program
from tpucc.isa.verify import arithmetic, definitions, encoding, endings, fifo, floats, hazards, ports, ranges, residents, structure
from tpucc.isa.verify.events import Events
from tpucc.isa.verify.hazards import clocks
from tpucc.isa.verify.memories import memory_events
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Rule, Violation
from tpucc.machine.parts import Contents, Memory

__all__ = ["RULES", "Rule", "Violation", "check", "check_structure", "raise_violations", "reported", "verify"]

_FILES = (structure, ports, encoding, ranges, definitions, fifo, residents, hazards, arithmetic, floats, endings)
RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for file in _FILES for rule in file.RULES})
"""Every rule by its code, in order."""
_OF_PROGRAMS: tuple[Callable[[Context], Iterator[Violation]], ...] = (
    *(endings.halts, endings.inputs_kept, endings.interrupts, definitions.configuration, fifo.check),
    *(residents.overlaps, arithmetic.blocks, floats.halves),
)
"""The rules of groups 4 to 10 about instructions."""
_OF_ROWS: Mapping[Contents, tuple[Callable[[Context, Events, Memory], Iterator[Violation]], ...]] = {
    Contents.VALUES: (definitions.values, residents.stays, floats.values),
    Contents.SUMS: (definitions.begun, definitions.sums, arithmetic.sums),
    Contents.BUFFERS: (definitions.buffers, endings.outputs, endings.states, floats.exchanges),
}
"""The rules of groups 4, 5, 7, 9 and 10 about rows, by the contents of their memory."""


def verify(program: Program, places: ListingSpans | None = None) -> tuple[Violation, ...]:
    """The program's violations of the machine's rules, in order of instructions; none when it may execute. Messages show
    instructions as they stand in `places`, the listing that the program was assembled from.

    Of each rule the first ten are given. Time and memory are linear in the number of instructions and the rows that they touch.
    """
    context = Context(program, places)
    for stage in (_structure, encoding.check, ranges.check, _meaning):
        found = reported(stage(context))
        if found:
            return found
    return ()


def check(program: Program, places: ListingSpans | None = None) -> None:
    """Raises `ProgramError` with a diagnostic for each violation; the source's line stands with it where the program knows it.

    `places` are the lines of the listing that the program was assembled from: then the message begins with the instruction's line there.
    """
    model = model_of(program)
    raise_violations(program, verify(program, places), model, places.source if places else model, places)


def check_structure(program: Program) -> None:
    """Raises `ProgramError` where parts of the program don't fit each other, so that not even its listing can be made."""
    model = model_of(program)
    raise_violations(program, reported(_structure(Context(program))), model, model)


def model_of(program: Program) -> Source | None:
    """The source that the program was compiled from, if it has it."""
    return Source(program.source, program.source_text) if program.source_text else None


def raise_violations(
    program: Program,
    found: Sequence[Violation],
    model: Source | None,
    source: Source | None,
    places: ListingSpans | None = None,
) -> None:
    """Raises `ProgramError` about `source` with a diagnostic for each violation, if there are any; each shows the instruction's line in
    `places`, and the line of `model` that its layer comes from, where these are known."""
    if not found:
        return
    diagnostics = [_diagnostic(program, violation, model, places) for violation in found]
    raise ProgramError(with_numbering(diagnostics, places), source)


def _structure(context: Context) -> Iterator[Violation]:
    yield from structure.check(context)
    yield from ports.check(context)


def _meaning(context: Context) -> Iterator[Violation]:
    """The violations of groups 4 to 10, which are about the instructions in the order of the program."""
    for rule in _OF_PROGRAMS:
        yield from rule(context)
    machine = context.program.machine
    known = clocks(context.program.instructions, context.effects, machine)
    yield from fifo.written(context, known)
    for memory in machine.memories:
        races = len(machine.sharing(memory)) > 1
        for events in memory_events(context, memory):
            for of_rows in _OF_ROWS[memory.contents]:
                yield from of_rows(context, events, memory)
            if races:
                yield from hazards.check(context, events, known, memory)


def reported(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """The violations to report, in the order of instructions: one for each rule and instruction, and the first few of each rule. Of several
    of one rule, the one that collides with the latest other instruction: its wait is the most likely to be missing."""
    first: dict[tuple[str, int, str], Violation] = {}
    for violation in violations:
        key = violation.code, violation.instruction, violation.message if violation.instruction < 0 else ""
        if key not in first or violation.other > first[key].other:
            first[key] = violation
    kept, counts = list[Violation](), Counter[str]()
    for violation in sorted(first.values(), key=lambda violation: (violation.instruction, violation.code)):
        counts[violation.code] += 1
        if counts[violation.code] <= MAX_REPORTED:
            kept.append(violation)
    return tuple(kept)


def _diagnostic(program: Program, violation: Violation, model: Source | None, places: ListingSpans | None) -> Diagnostic:
    labels: tuple[Label, ...] = ()
    if places is not None:
        labels = places.labels(violation.instruction) + places.labels(violation.other, f"instruction {violation.other:,}")
        labels = labels or places.of(*violation.about)
    if violation.instruction >= 0 and model is not None and violation.instruction < program.layer_of.size:
        layer = int(program.layer_of[violation.instruction])
        spans = program.layers[layer].origin.call if layer < len(program.layers) else ()
        labels += tuple(Label(span, "compiled from here", model) for span in spans)
    rule = RULES.get(violation.code)
    return Diagnostic(violation.code, violation.message, labels, (f"rule {rule.code}: {rule.description}",) if rule is not None else ())

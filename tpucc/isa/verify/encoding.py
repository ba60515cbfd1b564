"""Group 2: every record is an instruction in its one encoding."""

from __future__ import annotations

from collections.abc import Iterator

from tpucc.isa.fields import faults, kinds
from tpucc.isa.verify.rules import MAX_REPORTED, Context, Rule, Violation

RULES = (
    Rule("V0201", "opcodes", "The opcode is one that the machine has."),
    Rule("V0202", "flags", "Only flags that the instruction has are set."),
    Rule(
        "V0203", "unused fields", "Fields that the instruction doesn't use are zero (`outer` is 1 where rows are counted by `inner` alone)."
    ),
    Rule("V0204", "enumerations", "Functions and engines are ones that the instruction can have; a wait names at least one engine."),
)


_SAYS = {
    "V0202": "sets flags {excess:#x}, which {mnemonic} doesn't have",
    "V0203": "has {key} {found}; {mnemonic} doesn't use it, so it must be {allowed}",
    "V0204": "has {key} {found}, which means nothing",
}


def check(context: Context) -> Iterator[Violation]:
    """The violations of group 2; when there are none, every record is a well-formed instruction."""
    records, machine = context.program.instructions, context.program.machine
    for code, function, indices in kinds(records):
        spec = machine.by_opcode.get(code)
        if spec is None:
            yield from context.each("V0201", indices, f"has the unknown opcode {code}")
            continue
        for rule, field, key, wrong, allowed in faults(machine, spec, function, records[indices]):
            for index in indices[wrong][:MAX_REPORTED].tolist():
                found = int(records[field][index])
                message = _SAYS[rule].format(key=key, found=found, allowed=allowed, excess=found & ~allowed, mnemonic=spec.mnemonic)
                yield context.violation(rule, index, message)

"""Lab 8, a solution: the four rules, and programs for each."""

RULE = "{{name}}"


def violations(program):
    """The numbers of the instructions that break the term's rule."""
    return list(faults(program))


def faults(program):
    """The instructions that break the term's rule, each with the reason."""
    return {"unwritten": unwritten, "lost": lost, "fifo": fifo, "race": race}[RULE](program)


def unwritten(program):
    written, found = set(), {}
    for number, each in enumerate(program["instructions"]):
        if missing := sorted(set(each["reads"]) - written):
            found[number] = f"it reads row {missing[0]}, which nothing has written"
        written.update(each["writes"])
    return found


def lost(program):
    waiting, found = set(), {}
    for number, each in enumerate(program["instructions"]):
        if each["sums_written"]:
            gone = waiting.intersection(each["sums_written"]).difference(each["sums_read"])
            if gone:
                found[number] = f"it begins a sum in accumulator row {min(gone)}, whose sum was not activated"
            waiting.update(each["sums_written"])
        else:
            waiting.difference_update(each["sums_read"])
    return found


def fifo(program):
    tiles, found = 0, {}
    for number, each in enumerate(program["instructions"]):
        if each["tile"] is not None:
            tiles += 1
            if tiles > program["fifo"]:
                found[number] = f"it asks for a tile while {tiles - 1} wait, and the FIFO holds {program['fifo']}"
        if each["switch"]:
            if tiles:
                tiles -= 1
            else:
                found[number] = "it switches, and the FIFO is empty"
    return found


def race(program):
    """Clocks: for each engine the number of the last instruction of each other engine that has certainly finished."""
    known, begun, last, seen, found = {}, {}, {}, {}, {}
    for number, each in enumerate(program["instructions"]):
        for engine, others in each["waits"]:
            known[engine] = dict(known.get(engine, {}))
            for other in others:
                if other in last:
                    advance(known[engine], {other: last[other]})
                    advance(known[engine], begun[last[other]])
        if each["engine"] == "control":
            continue
        begun[number] = known.get(each["engine"], {})
        for place, writes in touched(each):
            for other, engine, wrote in seen.setdefault(place, []):
                if engine != each["engine"] and (writes or wrote) and begun[number].get(engine, -1) < other:
                    memory, row = place
                    found.setdefault(number, f"it touches row {row} of the {memory} without a wait for instruction {other} ({engine})")
            seen[place].append((number, each["engine"], writes))
        last[each["engine"]] = number
    return found


def advance(clock, other):
    for engine, number in other.items():
        clock[engine] = max(number, clock.get(engine, -1))


def touched(each):
    """The rows that an instruction touches, and whether it writes them."""
    memories = {"unified buffer": (each["reads"], each["writes"]), "accumulators": (each["sums_read"], each["sums_written"])}
    return [((memory, row), row in writes) for memory, (reads, writes) in memories.items() for row in sorted({*reads, *writes})]


def programs():
    """Texts that break the rule, and some that don't."""
    return [HEAD.replace("ROWS", rows) + code for rows, code in TEXTS[RULE]]


HEAD = """.target tiny
.input x 4x4
.output y ROWSx4
.tile
| 1
.tile
| 2
.block
"""
START = """
read_weights tile=0
read_host_memory host=x.0 ub=0 rows=4
set_configuration block=0
synchronize engine=matrix wait=host
"""
END = """
synchronize engine=host wait=activation
write_host_memory ub=8 host=y.0 rows=1
halt
"""
ACTIVATE = """
synchronize engine=activation wait=matrix
activate acc=ACC ub=8 inner=1
synchronize engine=matrix wait=activation
"""
GOOD = START + "matrix_multiply ub=0 acc=0 rows=1, switch" + ACTIVATE.replace("ACC", "0") + END
COPY = """
read_host_memory host=x.0 ub=0 rows=2
set_configuration block=0
synchronize engine=activation wait=host
"""


def sums(*lines):
    """Products on accumulator rows 0 and 1; rows 0 and 1 of the buffer are activated and written in the end."""
    end = ACTIVATE.replace("ACC", "0").replace("inner=1", "inner=2") + END.replace("rows=1", "rows=2")
    return "2", START + "\n".join(lines) + end


def multiply(acc, rows=1, flags=""):
    return f"matrix_multiply ub=0 acc={acc} rows={rows}{flags}"


LATER = """
synchronize engine=activation wait=matrix
activate acc=0 ub=8 inner=1
matrix_multiply ub=1 acc=1 rows=1
WAIT
synchronize engine=host wait=activation
read_host_memory host=x.0 ub=1 rows=1
synchronize engine=activation wait=matrix
activate acc=1 ub=9 inner=1
synchronize engine=host wait=activation
write_host_memory ub=8 host=y.0 rows=2
halt
"""

TEXTS = {
    "unwritten": [
        ("1", GOOD),
        ("2", "read_host_memory host=x.0 ub=0 rows=1\nwrite_host_memory ub=0 host=y.0 rows=2\nhalt"),
        ("3", COPY + "vector function=copy a=0 ub=8 ub_stride=2 inner=2" + END.replace("rows=1", "rows=3")),
        ("1", COPY + "vector function=copy a=8 ub=8 inner=1" + END),
        ("2", "write_host_memory ub=0 host=y.0 rows=1\nwrite_host_memory ub=0 host=y.0+1 rows=1\nhalt"),
        ("1", "write_host_memory ub=0 host=y.0 rows=1\nread_host_memory host=x.0 ub=0 rows=1\nhalt"),
        (
            "2",
            "read_weights tile=0\nread_host_memory host=x.0 ub=0 rows=1\nread_host_memory host=x.0 ub=2 rows=1\n"
            + "set_configuration block=0\nsynchronize engine=matrix wait=host\nconvolve ub=0 ub_stride=2 acc=0 inner=2, switch"
            + ACTIVATE.replace("ACC", "0").replace("inner=1", "inner=2")
            + END.replace("rows=1", "rows=2"),
        ),
    ],
    "lost": [
        sums(multiply(0, 2, ", switch"), multiply(0, 2, ", accumulate")),
        sums(multiply(1, 1, ", switch"), multiply(0, 2)),
        sums(multiply(0, 2, ", switch"), ACTIVATE.replace("ACC", "0"), multiply(1), multiply(0)),
        sums(multiply(0, 1, ", switch"), multiply(1), multiply(0)),
        sums(multiply(0, 2, ", switch"), multiply(0, 2), multiply(0, 2)),
        sums(multiply(0, 2, ", switch"), ACTIVATE.replace("ACC", "0").replace("inner=1", "inner=2"), multiply(0, 2)),
        sums(multiply(0, 2, ", switch"), multiply(0, 2, ", accumulate"), multiply(0, 2)),
    ],
    "fifo": [
        sums(multiply(0, 2, ", switch"), multiply(0, 2, ", accumulate")),
        sums("read_weights tile=0", multiply(0, 2, ", switch"), multiply(0, 2, ", switch, accumulate")),
        sums(multiply(0, 2, ", switch"), "read_weights tile=0", multiply(0, 2, ", switch, accumulate")),
        sums("read_weights tile=1", "read_weights tile=1", *(multiply(0, 2, f", switch{also}") for also in ("", *[", accumulate"] * 2))),
        sums(
            "read_weights tile=1",
            "convolve ub=0 acc=0 inner=2, switch",
            "read_weights tile=0",
            *[multiply(0, 2, ", switch, accumulate")] * 2,
        ),
        sums(
            *(multiply(0, 2, f", switch{also}") for also in ("", *[", accumulate"])),
            "read_weights tile=1",
            multiply(0, 2, ", switch, accumulate"),
        ),
    ],
    "race": [
        ("1", START + multiply(0, 1, ", switch") + "\nactivate acc=0 ub=8 inner=1\n" + END),
        ("1", START + multiply(0, 1, ", switch") + "\nsynchronize engine=activation wait=host\nactivate acc=0 ub=8 inner=1\n" + END),
        (
            "2",
            START
            + multiply(0, 1, ", switch")
            + "\nsynchronize engine=activation wait=matrix\nactivate acc=0 ub=8 inner=1\nsynchronize engine=activation wait=matrix\n"
            + multiply(0)
            + "\nsynchronize engine=activation wait=matrix\nactivate acc=0 ub=9 inner=1\n"
            + END.replace("rows=1", "rows=2"),
        ),
        (
            "1",
            START
            + multiply(0, 1, ", switch")
            + "\nsynchronize engine=host wait=matrix\nread_host_memory host=x.0 ub=0 rows=1\nsynchronize engine=activation wait=host\n"
            + "activate acc=0 ub=8 inner=1\n"
            + END,
        ),
        (
            "2",
            START
            + multiply(0, 1, ", switch")
            + "\nsynchronize engine=activation wait=host\nvector function=copy a=0 ub=9 inner=1\n"
            + ACTIVATE.replace("ACC", "0")
            + END.replace("rows=1", "rows=2"),
        ),
        *(
            ("2", START + multiply(0, 1, ", switch") + LATER.replace("WAIT", wait))
            for wait in ("", "synchronize engine=activation wait=matrix")
        ),
    ],
}

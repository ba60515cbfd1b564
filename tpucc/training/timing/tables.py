"""The time of a step as tables for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tpucc.diagnostics import counted, printable
from tpucc.explain.quantities import size
from tpucc.explain.tables import table, wrapped
from tpucc.machines.v2.units import Unit
from tpucc.sim.durations import duration, durations
from tpucc.target import machine_name
from tpucc.training.roles import Role
from tpucc.training.timing.step_time import StepTime, TimedGroup

LONGEST = 12
"""Groups that the table shows."""
MATTERS = 0.01
"""An assumption is told where it makes up at least this share of the time."""


def step_text(name: str, time: StepTime, numerics: str) -> str:
    """Where the time of a step goes: by part, by unit, and of the longest groups."""
    examples = counted(time.examples, "example")
    head = f"{printable(name)} on {machine_name(time.target.name, time.cores)}: a step of {examples} takes {duration(time.seconds)}, "
    head += f"{time.examples / time.seconds:,.0f} examples a second"
    texts = [wrapped(head + (f"; {numerics}" if numerics else ""), "  "), _parts_table(time), _groups_table(time)]
    texts.append("\n".join(wrapped(sentence, "  ") for sentence in sentences(time)))
    return "\n\n".join(texts)


def scaling_text(name: str, times: Sequence[StepTime], numerics: str) -> str:
    """A step of one batch on several numbers of cores."""
    head = f"{printable(name)} on {times[0].target.name}: a step of {counted(times[0].examples, 'example')}, divided among cores"
    rows = [
        (
            f"{time.cores:,}",
            f"{time.examples // time.cores:,}",
            seconds,
            f"{time.examples / time.seconds:,.0f}",
            f"{speed_up:.2f}",
            f"{100 * speed_up * times[0].cores / time.cores:.0f} %",
            time.limits,
            size(time.held_bytes),
        )
        for time, speed_up, seconds in zip(times, _speed_ups(times), durations([time.seconds for time in times]), strict=True)
    ]
    heads = ("cores", "items", "step", "items/s", "speed-up", "efficiency", "limits", "memory")
    notes = [sentence for time in times if (sentence := _full(time))]
    texts = [wrapped(head + (f"; {numerics}" if numerics else ""), "  "), table(heads, rows, left=0)]
    return "\n\n".join([*texts, *(["\n".join(wrapped(note, "  ") for note in notes)] if notes else [])])


def sentences(time: StepTime) -> list[str]:
    """What the tables don't say: memory, what would be gained by overlapping, and what is assumed."""
    moved = ", ".join(f"{what} {size(count)}" for what, count in time.bytes.most_common())
    found = [
        f"memory: {size(time.held_bytes)} of {size(time.memory_bytes)} a core at most; a step moves {moved}",
        *filter(None, [_full(time)]),
    ]
    found.append(f"the host, beside it: {duration(time.host_seconds)} to write a batch, at the price of a host step (assumed)")
    found.append(f"if groups overlapped as far as their order and their units allow: {duration(time.overlapped_seconds)}")
    if (share := time.latency_seconds / time.seconds) >= MATTERS:
        words = f"{counted(len(time.groups), 'group')} of {duration(time.target.hbm_latency_seconds)} of memory's latency each"
        found.append(f"assumed: {words}, {100 * share:.0f} % of the time (hbm_latency_seconds)")
    if (lanes := time.limited[Unit.LANES]) >= MATTERS * time.seconds:
        found.append(f"assumed: the cycles in which lanes are turned and moved, which limit {100 * lanes / time.seconds:.0f} % of the time")
    return found


def step_json(time: StepTime) -> dict[str, Any]:
    """The numbers of a step, in seconds and bytes. `bound` is the unit that limits the largest share of it; `hbm_bytes` is the most that a
    core's memory holds. The host's seconds are beside those of the device."""
    return {
        "cores": time.cores,
        "examples": time.examples,
        "seconds": time.seconds,
        "examples_per_second": time.examples / time.seconds,
        "bound": str(time.bound),
        "busy": _words(time.busy),
        "limited": _words(time.limited),
        "parts": {str(role): sum(group.seconds for group in groups) for role, groups in _by_role(time).items()},
        "bytes": dict(time.bytes),
        "hbm_bytes": time.held_bytes,
        "hbm_capacity_bytes": time.memory_bytes,
        "host_seconds": time.host_seconds,
        "overlapped_seconds": time.overlapped_seconds,
        "latency_seconds": time.latency_seconds,
    }


def groups_json(time: StepTime) -> list[dict[str, Any]]:
    """Each group with its operators and its time, in the order in which they are computed."""
    return [
        {
            "name": group.name,
            "part": str(group.role),
            "operators": [node.name for node in group.group.computed],
            "read": list(group.group.read),
            "near": sorted(group.group.near),
            "written": list(group.group.written),
            "seconds": group.seconds,
            "bound": str(group.bound),
            "busy": _words(group.busy),
            "bytes": dict(group.bytes),
        }
        for group in time.groups
    ]


def _full(time: StepTime) -> str:
    """What to do where a step needs more memory than there is; else nothing."""
    if time.held_bytes <= time.memory_bytes:
        return ""
    cores = machine_name(time.target.name, time.cores)
    less = "more cores or a smaller batch" if time.is_rounded else "--activations bf16, more cores or a smaller batch"
    return f"note: {cores}: {size(time.held_bytes)} a core are more than its {size(time.memory_bytes)} of memory; {less} would need less"


def _parts_table(time: StepTime) -> str:
    rows = [_row(str(role), groups, time) for role, groups in _by_role(time).items()]
    return table(_heads("part", "groups", time), [*rows, _row("in all", time.groups, time)])


def _row(name: str, groups: Sequence[TimedGroup], time: StepTime) -> tuple[str, ...]:
    busy = [sum(group.busy[unit] for group in groups) for unit in Unit]
    seconds = sum(group.seconds for group in groups)
    return name, f"{len(groups):,}", *_times((seconds, *busy), time), f"{100 * seconds / time.seconds:.1f}"


def _groups_table(time: StepTime) -> str:
    longest = sorted(time.groups, key=lambda group: -group.seconds)[:LONGEST]
    rows = [(f"{group.role}: {group.name}", str(group.bound), *_times((group.seconds, *group.busy.values()), time)) for group in longest]
    shares = [f"{100 * group.seconds / time.seconds:.1f}" for group in longest]
    return table(_heads("longest groups", "bound by", time), [(*cells, share) for cells, share in zip(rows, shares, strict=True)])


def _heads(first: str, second: str, time: StepTime) -> tuple[str, ...]:
    return first, second, durations([time.seconds])[0].split()[1], *map(str, Unit), "%"


def _times(seconds: Iterable[float], time: StepTime) -> list[str]:
    """A row's times in the unit of the whole step's, which the head has; a dash for none."""
    found = (text.split()[0] for text in durations([time.seconds, *seconds])[1:])
    return [text if float(text.replace(",", "")) else "–" for text in found]


def _by_role(time: StepTime) -> dict[Role, list[TimedGroup]]:
    found = {role: [group for group in time.groups if group.role is role] for role in Role}
    return {role: groups for role, groups in found.items() if groups}


def _speed_ups(times: Sequence[StepTime]) -> Iterable[float]:
    return (times[0].seconds / time.seconds for time in times)


def _words(seconds: Mapping[Unit, float]) -> dict[str, float]:
    return {str(unit): value for unit, value in seconds.items()}

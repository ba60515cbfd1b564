"""The time of a batch from the model's inputs to its outputs: `end_to_end` of `stats.json`.

`cycles` are the device's and the link's. The host works before them and after them: it computes the operators that stand there, makes
integers of the inputs, and numbers of the outputs. That takes as long as the same work would take in a step of the host
(`Target.host_part_seconds`), whose price is our assumption. Cores have one host, which serves one after the other.

In a stream of batches the host works on one batch while the device computes another. A batch then takes as long as the busier of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpucc.diagnostics import counted
from tpucc.explain.attribution import input_reads
from tpucc.explain.critical import NOTHING, Limit, drains_of
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.prose import percent
from tpucc.sim.durations import Edges, duration, edge_seconds, host_seconds
from tpucc.sim.timing import Timeline
from tpucc.target import number_text

PARTS: Mapping[str, str] = {
    "host_before": "host before",
    "link_in": "link in",
    "device": "device",
    "link_out": "link out",
    "host_after": "host after",
}
"""The parts of `end_to_end` that follow one another, with their names in tables."""


def end_to_end(stats: Mapping[str, Any], program: Program, timeline: Timeline, edges: Edges) -> dict[str, Any]:
    """`seconds`, and of them each of `PARTS`; `stream_seconds` of a batch among others; what limits both; a sentence about that, and the
    advice that it ends with, empty where there is none.

    `stats` are the machine's numbers. `bottleneck` is the limit that takes most of the time, one of `BOTTLENECKS`.
    """
    before, after = edge_seconds(program, edges)
    link_in, device, link_out = (cycles / program.target.clock_hz for cycles in _device_parts(program, timeline))
    parts = dict(zip(PARTS, (before, link_in, device, link_out, after), strict=True))
    streamed, busy = stats["stream"], host_seconds(program, timeline, edges)
    found = {
        "seconds": before + stats["seconds"] + after,
        **parts,
        "stream_seconds": max(streamed["seconds"], busy),
        "bottleneck": limit_of(_path_seconds(stats), before + after),
        "stream_bottleneck": Limit.HOST_WORK.value if busy > streamed["seconds"] else streamed["bottleneck"],
    }
    words, advice = _explanation(found["seconds"], program, edges)
    return {**found, "explanation": "; ".join(filter(None, (words, advice))), "advice": advice}


def _path_seconds(stats: Mapping[str, Any]) -> Mapping[str, float]:
    return {limit.replace("_", " "): share / 100 * stats["seconds"] for limit, share in stats["critical_path"].items()}


def _device_parts(program: Program, timeline: Timeline) -> tuple[int, int, int]:
    """The cycles of the first transfers, until the first input has crossed and a unit computes; of the device; and of the last transfers,
    when all have computed."""
    touched = effects(program.instructions, program.machine)
    engine, account = touched.engine, program.machine.account
    computing = (touched.rows > 0) & ((engine == account.computes) | (engine == account.finishes))
    if not computing.any():
        return timeline.makespan, 0, 0
    crossed, drained = timeline.end[input_reads(program, touched)], drains_of(program, touched)
    first = int(crossed.min()) if len(crossed) else 0
    begins = int(timeline.start[computing & (timeline.start >= first)].min(initial=timeline.makespan))
    link_in = int(timeline.end[(engine == account.supplies) & (timeline.end <= begins)].max(initial=0))
    link_out = timeline.makespan - int((timeline.end + drained)[computing].max())
    return link_in, timeline.makespan - link_in - link_out, link_out


def limit_of(path: Mapping[str, float], edges: float) -> str:
    """The limit that most of the time depends on; `nothing` where there is none. `path` has the seconds of each on the critical path, and
    `edges` those of the host's work at both ends, which belongs to `host work`."""
    own = Limit.HOST_WORK.value
    seconds = {**path, own: path.get(own, 0.0) + edges}
    return max(seconds, key=lambda limit: seconds[limit]) if any(seconds.values()) else NOTHING


def _explanation(seconds: float, program: Program, edges: Edges) -> tuple[str, str]:
    """The host's share at both ends, and what would make it shorter where it is the larger one; empty where the host has no work there."""
    host = sum(edge_seconds(program, edges))
    if not host:
        return "", ""
    share = percent(host, seconds)
    words = f"end to end a batch takes {duration(seconds)}, {share} of that for the work of the host before and after, which is assumed"
    return words, _lever(program, edges, host) if 2 * host > seconds else ""


def _lever(program: Program, edges: Edges, host: float) -> str:
    """What makes the host's work at both ends shorter."""
    target = program.target
    starting = program.cores * sum(map(bool, edges)) * target.host_step_seconds
    if 2 * starting > host:
        return f"a larger batch would share the {duration(starting)} that the host takes to begin among more items"
    rate, values = number_text(2 * target.host_elements_per_second), counted(program.cores * sum(edges), "value")
    return f"--set host_elements_per_second={rate} would compute the {values} there in half the time"

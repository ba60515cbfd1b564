"""The roofs of a model or a layer: what each part of the machine allows it (Williams, Waterman and Patterson, "Roofline", 2009).

As in the TPU paper, intensity counts multiply-accumulates for each byte of weights that is read: Jouppi et al., 2017, figure 5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tpucc.explain.attribution import INPUT
from tpucc.explain.timed import Timed
from tpucc.isa.effects import effects
from tpucc.isa.program import Program
from tpucc.sim.timing import Timeline
from tpucc.target import Target

FULL = 0.995
"""From this share on the cells count as full."""
LINK, HOST, CELLS, UNIT = "the host link", "the host and its link", "the cells that hold weights", "the activation unit"
BOTTLENECKS_OF = {
    "the matrix unit": ("matrix unit",),
    CELLS: ("matrix unit",),
    "weight memory": ("weight memory",),
    LINK: ("host link",),
    HOST: ("host link", "host work"),
    UNIT: ("activation",),
}
"""The bottlenecks that each roof is the limit of."""


@dataclass(frozen=True, slots=True)
class ModelLimit:
    """What limits a model: its bottleneck, the percentage of the critical path that this takes, and the share of the matrix unit's cells
    that hold weights of the model while it multiplies."""

    name: str
    share: float
    fill: float = 1.0


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """The work of a layer or a whole model on one core: multiply-accumulates, bytes of weights that it reads, and the cycles it takes.

    `layer` is the layer's number in the program; of the model -1. `link_cycles` is how long the host link is busy with the model, the
    latency of each transfer included; of a layer 0. In these cycles the host computes steps, too, where there are `host_steps`.
    `unit_cycles` is how long the activation unit computes rows for the model. `limited` is the model's.
    """

    name: str
    macs: int
    weight_bytes: int
    cycles: int
    layer: int = -1
    link_cycles: int = 0
    host_steps: int = 0
    unit_cycles: int = 0
    limited: ModelLimit | None = None
    bytes_per_value: int = 1
    """A row of values of 16 bits takes the matrix unit twice as long, so that its peak is half."""

    @property
    def intensity(self) -> float:
        return self.macs / self.weight_bytes

    def peak(self, target: Target) -> float:
        """The operations a second of the matrix unit, for values of this size."""
        return target.peak_ops / self.bytes_per_value

    def fetch_cycles(self, target: Target) -> float:
        """How long weight memory takes to send its bytes."""
        return self.weight_bytes * target.clock_hz / target.weight_bandwidth

    def is_fetched_early(self, target: Target) -> bool:
        """Whether its fetches take longer than itself: some of them took place in another layer's time."""
        return self.fetch_cycles(target) > 1.02 * self.cycles

    def rate(self, target: Target) -> float:
        """Operations a second, two a multiply-accumulate, in the cycles that it takes, or in those of its fetches if these are more. So
        no rate is above the roofs of its intensity."""
        return 2.0 * self.macs * target.clock_hz / max(self.cycles, self.fetch_cycles(target))

    @property
    def link(self) -> str:
        """The name of the link's roof."""
        return HOST if self.host_steps else LINK

    def roofs(self, target: Target) -> dict[str, float]:
        """The operations a second that each part of the machine allows (Williams et al., 2009)."""
        found = {"the matrix unit": self.peak(target), "weight memory": 2.0 * self.intensity * target.weight_bandwidth}
        if self.link_cycles:
            found[self.link] = 2.0 * self.macs * target.clock_hz / self.link_cycles
        if self.limited and self.limited.name == "matrix unit" and self.limited.fill < FULL:
            found[CELLS] = self.limited.fill * self.peak(target)
        if self.unit_cycles and self.limited and self.limited.name == "activation":
            found[UNIT] = 2.0 * self.macs * target.clock_hz / self.unit_cycles
        return found

    def dashed(self, target: Target) -> list[str]:
        """The roofs that are drawn for the whole model: its bottleneck's, and the link's if it is the lowest; none if it has no point."""
        if not self.drawable:
            return []
        limits = self.limited is not None and self.limited.name in BOTTLENECKS_OF[self.link]
        own = (CELLS, UNIT, self.link) if limits or self.limit(target) == self.link else (CELLS, UNIT)
        return [name for name in self.roofs(target) if name in own]

    def roof(self, target: Target) -> float:
        """The lowest of its roofs."""
        return min(self.roofs(target).values())

    def limit(self, target: Target) -> str:
        """Whose roof is the lowest."""
        roofs = self.roofs(target)
        return min(roofs, key=lambda name: roofs[name])

    @property
    def drawable(self) -> bool:
        return self.macs > 0 and self.weight_bytes > 0 and self.cycles > 0

    @property
    def moving(self) -> bool:
        """Whether it fetches tiles that are no weights of the model, by which it moves values: it has no multiply-accumulates."""
        return not self.macs and self.weight_bytes > 0

    @property
    def kept(self) -> bool:
        """Whether it fetches no tiles, as an earlier layer did or the vector unit computes it: it has no bytes, and so no intensity."""
        return self.macs > 0 and not self.weight_bytes


def ridge(target: Target, bytes_per_value: int = 1) -> float:
    """The intensity from which on the matrix unit, not weight memory, is the limit: about 1,350 on TPU v1, with values of 8 bits."""
    return target.peak_ops / bytes_per_value / 2.0 / target.weight_bandwidth


def allow(limit: str) -> str:
    return "allow" if limit in (CELLS, HOST) else "allows"


def works_of(runtime: Timed) -> list[RooflinePoint]:
    """The work of the model on one core, and after it the work of each layer; bytes are those of the weight tiles fetched, as in the TPU
    paper. A tile that is fetched twice counts twice; a layer that fetches none has no bytes."""
    stats, target, cores = runtime.stats, runtime.program.target, runtime.program.cores
    own = ((layer["name"], layer, index) for index, layer in enumerate(stats["layers"]) if layer["kind"] != INPUT)
    works = ((runtime.program.title, stats, -1), *own)
    size = round(target.peak_ops * cores / (1e12 * stats["peak_tops"]))
    model, *layers = (
        RooflinePoint(name, x["macs"] // cores, x["tile_fetches"] * target.tile_bytes, x["cycles"], n, bytes_per_value=size)
        for name, x, n in works
    )
    active, useful = (stats["breakdown"][key] for key in ("array_active", "useful_macs"))
    limit = ModelLimit(stats["bottleneck"], stats["bottleneck_share"], useful / active if active else 1.0)
    link, steps = stats["stream"]["link_cycles"], len(runtime.program.host_steps)
    work = finishing_work(runtime.program, runtime.timeline)
    return [replace(model, link_cycles=link, host_steps=steps, unit_cycles=work, limited=limit), *layers]


def finishing_work(program: Program, timeline: Timeline) -> int:
    """The cycles in which the unit that finishes results (v1: the activation unit) computes rows."""
    touched, unit = effects(program.instructions, program.machine), program.machine.account.finishes
    return int((timeline.end - timeline.start)[touched.moves & (touched.engine == unit)].sum())

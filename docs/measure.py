"""What the pages about the programs measure: sizes and cycles of each, and what single passes save."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tpucc.compilation import Compilation
from tpucc.diagnostics import Source
from tpucc.driver import compile_source
from tpucc.explain.tables import SCALING_HEADS, scaling, scaling_cells
from tpucc.explain.timed import Timed
from tpucc.options import Options
from tpucc.sim.durations import duration

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
AS_THEY_STAND: tuple[tuple[str, Mapping[str, str]], ...] = tuple((path.stem, {}) for path in sorted(PROGRAMS.glob("*.tpu")))
LARGER: tuple[tuple[str, Mapping[str, str]], ...] = (("09_cifar_resnet", {"n": "9"}), ("11_resnet50", {"batch": "8"}))
"""Programs at other sizes: with the params that aren't their defaults."""
GALLERY: tuple[tuple[str, Mapping[str, str]], ...] = tuple((f"gallery/{path.stem}", {}) for path in sorted(PROGRAMS.glob("gallery/*.tpu")))
"""Those of the gallery."""
COLUMNS = (
    *("program", "end to end", "host", "in a stream", "bottleneck", "layers", "weights", "MACs", "tiles", "fetches", "fill"),
    *("instructions", "host steps", "peak buffer", "cycles", "TOPS", "device's bottleneck"),
)
SAVINGS: tuple[tuple[str, Mapping[str, str], tuple[str, ...]], ...] = (
    ("05_digits_cnn", {}, ("fuse-activation", "flatten-to-convolution", "fuse-bias")),
    ("08_fashion_cnn", {}, ("pack-patches", "hoist-activations", "flatten-to-convolution", "fuse-bias")),
    ("09_cifar_resnet", {}, ("fuse-activation", "fold-scales", "fuse-bias")),
    (
        "06_digits_lstm",
        {},
        ("push-slices", "batch-products", "reassociate-bias", "fuse-activation", "fuse-bias", "fold-scales"),
    ),
    ("10_imdb_lstm", {"time": "50"}, ("push-slices", "batch-products", "reassociate-bias", "fuse-activation", "fuse-bias")),
    ("12_mlp_mixer_block", {"tanh_gelu": "1"}, ("fuse-activation",)),
)
"""Of each program the passes that are left out, one at a time; "a b" are both."""
CORES = (1, 2, 4, 8)
SCALED: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("04_digits_mlp", {}),
    ("09_cifar_resnet", {}),
    ("10_imdb_lstm", {"time": "50"}),
    ("10_imdb_lstm", {"time": "50", "batch": "512"}),
    ("12_mlp_mixer_block", {"batch": "8"}),
)
"""Programs that are divided among `CORES`, with the params that aren't their defaults."""


@dataclass(frozen=True)
class Measured:
    """A compiled program: its name with params, the number of its layers and of its weights, and its statistics."""

    name: str
    layers: int
    weights: int
    stats: Mapping[str, Any]

    @property
    def fill(self) -> float:
        """Percent of the matrix unit's cells that do work of the model while it multiplies."""
        breakdown = self.stats["breakdown"]
        return 100 * float(breakdown["useful_macs"]) / float(breakdown["array_active"]) if breakdown["array_active"] else 0.0


def measured(name: str, params: Mapping[str, str], omit: frozenset[str] = frozenset()) -> Measured:
    """Compiles a program, without the passes `omit`, and times it; each once."""
    return _measured(name, tuple(params.items()), omit)


@cache
def _measured(name: str, given: tuple[tuple[str, str], ...], omit: frozenset[str]) -> Measured:
    params = dict(given)
    compilation = compiled(name, Options(params=params, omit=omit))
    program, graph = compilation.program, compilation.graph
    assert program is not None
    assert graph is not None
    weights = sum(node.type.size for node in graph if node.op in ("weight", "constant") and node.type.rank)
    return Measured(named(name, params), program.device_layers, weights, Timed(program).stats)


def compiled(name: str, options: Options) -> Compilation:
    path = PROGRAMS / f"{name}.tpu"
    return compile_source(Source(path.name, path.read_text("utf-8")), path.parent, options)


def named(name: str, params: Mapping[str, str]) -> str:
    name = name.removeprefix("gallery/")
    words = ", ".join(f"{key}={value}" for key, value in params.items())
    return f"{name} ({words})" if words else name


def programs_page() -> str:
    """The tables of all programs, of larger ones, of the passes, and of several cores."""
    return "\n".join([programs_as_they_stand(), *_larger(), "", *_savings(), "", *_scaling()]) + "\n"


def programs_as_they_stand() -> str:
    """The page's beginning: the tables of all programs."""
    return "\n".join([*_programs(), "", *_gallery()]) + "\n"


def row_heads() -> Iterator[str]:
    """How the rows of all programs begin."""
    yield from (f"| {named(name, params)} | " for name, params, *_ in (*AS_THEY_STAND, *GALLERY, *LARGER, *SAVINGS, *SCALED))


def _programs() -> Iterator[str]:
    yield "# Programs\n"
    yield (
        "Every program of `programs/` as it stands, on `tpu_v1` with all passes. *End to end* is the time of a batch from the model's "
        "inputs to its outputs; *host* is the part of it that the host works before the device starts and after it has finished, at an "
        "assumed price ([what is assumed](assumptions.md)). *Cycles* and *TOPS* are those of the device and its link. *Fill* is the share "
        "of the matrix unit's cells that do work of the model in the cycles in which it multiplies; *fetches* counts tiles as often as "
        "they are loaded.\n"
    )
    yield from _table(AS_THEY_STAND)


def _gallery() -> Iterator[str]:
    yield "## The gallery\n"
    yield (
        "The programs of `programs/gallery/`: [networks that people have](../networks.md#the-gallery). Those that begin with *digits* are "
        "trained; the others are as they were published, with random weights.\n"
    )
    yield from _table(GALLERY)


def _larger() -> Iterator[str]:
    yield "## At other sizes\n"
    yield "Params (`-D NAME=VALUE`) make larger networks of two of the programs.\n"
    yield from _table(LARGER)


def _table(rows: Iterable[tuple[str, Mapping[str, str]]]) -> Iterator[str]:
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    found = [measured(name, params) for name, params in rows]
    yield from map(_program_row, found)
    remarks = (
        ("MACs and TOPS are those of the device. The host computes more products", "host_macs", "multiply-accumulates"),
        ("Of the tiles some hold no weights, but values that the host writes while the program runs", "written_tiles", "tiles"),
    )
    for remark, key, noun in remarks:
        if own := [f"{each.name} {each.stats[key]:,}" for each in found if each.stats[key]]:
            yield f"\n{remark}: {', '.join(own)} {noun}."


def _program_row(found: Measured) -> str:
    numbers = found.stats
    whole = numbers["end_to_end"]
    cells = (
        *(found.name, duration(whole["seconds"]), host_share(whole), duration(whole["stream_seconds"]), whole["bottleneck"]),
        *(f"{found.layers:,}", f"{found.weights:,}", f"{numbers['macs']:,}", f"{numbers['tiles']:,}"),
        *(f"{numbers['tile_fetches']:,}", f"{found.fill:.1f} %", f"{numbers['instructions']:,}", f"{numbers['host_steps']}"),
        *(f"{numbers['ub_peak_bytes'] / 2**20:.2f} MiB", f"{numbers['cycles']:,}", f"{numbers['tops']:.2f}", numbers["bottleneck"]),
    )
    return f"| {' | '.join(cells)} |"


def host_share(whole: Mapping[str, Any]) -> str:
    """Of a batch from end to end the part that the host works at both ends: `12.3 %`."""
    return f"{100 * (whole['host_before'] + whole['host_after']) / whole['seconds']:.1f} %"


def _savings() -> Iterator[str]:
    yield "## What passes save\n"
    yield ("The same programs with one pass left out (`--omit PASS`), beside all passes.\n")
    yield (
        "The columns show what is saved. `batch-products` and `push-slices` save *fetches of tiles*: weights are loaded once for the "
        "rows of all steps. `pack-patches` saves *products*, one that uses more lanes stands for several, and costs the host's time. "
        "`fuse-bias`, "
        "`fuse-activation`, `fold-scales`, `hoist-activations` and `reassociate-bias` save *passes over the rows* "
        "by the activation unit: what would be a layer of its own is done on the way from the accumulators. `flatten-to-convolution` "
        "saves a *host step*, and with it a way over the link and back. A pass can cost cycles in one program and save more in "
        "another.\n"
    )
    yield "| program | without | end to end | more than with all | cycles | fill | tile fetches | instructions | host steps |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, params, passes in SAVINGS:
        yield from _saving_rows(name, params, passes)


def _saving_rows(name: str, params: Mapping[str, str], passes: Iterable[str]) -> Iterator[str]:
    whole = measured(name, params)
    yield _saving(whole, "–", whole)
    for omitted in passes:
        names = omitted.split()
        yield _saving(measured(name, params, frozenset(names)), " and ".join(f"`{name}`" for name in names), whole)


def _saving(found: Measured, omitted: str, whole: Measured) -> str:
    numbers, seconds = found.stats, whole.stats["end_to_end"]["seconds"]
    own = numbers["end_to_end"]["seconds"]
    more = "" if found is whole else f"{100 * (own - seconds) / seconds:+.1f} %"
    cells = (
        *(found.name, omitted, duration(own), more, f"{numbers['cycles']:,}", f"{found.fill:.2f} %"),
        *(f"{numbers['tile_fetches']:,}", f"{numbers['instructions']:,}", f"{numbers['host_steps']}"),
    )
    return f"| {' | '.join(cells)} |"


def _scaling() -> Iterator[str]:
    yield "## Several cores\n"
    yield (
        "One batch divided among cores that share the host link (`--cores N`; [the machine](../machine.md#several-cores) has the rules). "
        "*Items* are those of each core; *speed-up* compares with one core, *efficiency* is the speed-up over the number of cores. A core "
        "has all weights and fetches all tiles, so that only what takes time for each row gets shorter; transfers and host steps of all "
        "cores together take as long as before.\n"
    )
    yield f"| program | {' | '.join(SCALING_HEADS)} |"
    yield f"|{'---|' * (len(SCALING_HEADS) + 1)}"
    for name, params in SCALED:
        yield from _scaled_rows(name, params)


def _scaled_rows(name: str, params: Mapping[str, str]) -> Iterator[str]:
    programs = (compiled(name, Options(params=params, cores=cores)).program for cores in CORES)
    for row in scaling_cells(scaling([Timed(program) for program in programs if program is not None])):
        yield f"| {named(name, params)} | {' | '.join(row)} |"

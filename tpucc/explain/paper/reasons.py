"""Why our figures differ from the paper's, where they differ much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from tpucc.explain.paper.figures import Figure, Section
from tpucc.explain.paper.published import published

ALL = ("",)
"""Every column that has no reason of its own."""
UNKNOWN = "not explained."
_SHARES = (
    "rows 1, 4, 5 and 6 add up to 100 %. Our row 6 is smaller, so our row 4 is larger. The fetches of tiles take the same time in both."
)
_HIDDEN = (
    "the work after a layer, its activation and its transfers, runs while the next layer's tiles are fetched. Most of the output leaves "
    "while the last layer still computes. Programs without this overlap have a row 6 like the paper's: see the next section."
)
_BLOCKS = (
    "the paper's matrix unit waits until the whole layer before is complete. Ours waits only for the columns that it needs next, and most "
    "of these are there by then. For the LSTMs the paper's rows 7 and 8 add up to more than row 6, so they also count cycles of other rows."
)
_FIRST_INPUT = (
    "our program is one batch. Its input must cross the host link before the first product. In a stream of batches it would cross during "
    "the batch before."
)
_STREAM = (
    "in a stream weight memory works all the time, and only its bandwidth limits the speed. The paper doesn't say how far its server "
    "overlaps batches."
)
_CROSSED = "in a stream the input crosses during the batch before, so nothing waits for it. The paper's counters measured such waits."
_PRODUCTION = (
    "the paper's production run reaches 93.7 % of the peak (row 9), and its counters show 78.2 %. Our convolutions overlap with the work "
    "after them, more than the counters show. The production run's do, too."
)
_COUNTERS = (
    "the paper's row 9 is a production run at 93.7 % of the peak. Its counters show 78.2 % useful cycles, which are 71.7 TOPS. One set of "
    "timing rules can't agree with both."
)
_SHAPES = "its shapes other than 600×600 are not published."
_LSTM0 = (
    "ours waits for almost nothing but weights. Their roof is 2 × 64 × 34 GB/s = 4.35 TOPS. The paper's LSTM0 spends 17.9 % of its cycles "
    "on other things (row 6)."
)
_LSTM1 = (
    "ours reaches the roof of its padded tiles: 59 multiply-accumulates a fetched byte, 4.0 TOPS. Nothing published says why the paper's "
    f"is below it: {_SHAPES}"
)
_IN_TURN = (
    "each layer waits for the last activation of the one before it, 16 times. With -O2 two halves of the batch take turns instead. The "
    "48 channels of the input leave most of a tile empty. With -O2 patches fill it."
)
_MLP1_COUNTERS = "the paper's row 9 is from production. Its counters' row 2 is 8.6 TOPS."
_PADDING = "tiles are fetched whole. The matrices fill 88.5 % of MLP1's tiles and 61 % of LSTM1's. The rest is padding."
_HALVES = (
    "the batch is computed in two halves that take turns, so that one's activation overlaps the other's products. Each weight tile is "
    "fetched for both halves. The intensity is still above the ridge."
)
_BUFFER = (
    "ours keeps those values of one batch that will still be read, and reuses all other rows. What the paper's buffers hold isn't "
    "published: MLP0's 11 MiB would be 28 activations of 200×2000."
)
_BORDERS = "two feature maps are in the buffer at the same time, each with its border of zero points: 8 × 21 × 21 rows."
_HOST = (
    "the paper's figure is of a server with its host's work, which answers 99 % of its requests within 7 ms. Ours is of the device alone, "
    "batch after batch."
)
_HOST_TIME = (
    "table 5 counts only the host's transfers. It leaves out the host's own part of the application, and the queue that keeps 99 % of the "
    "answers within 7 ms."
)
_FOUR_STEPS = (
    "a product takes four tiles instead of nine, and each tile takes four times as long: 9 ÷ 16 of the speed. The paper's own example is "
    "18 against 32 µs. Its “slightly degrades” is the mean of all applications."
)
_QUARTER = (
    "its layers have 256 channels in and out. They fill a quarter of a 512×512 tile, which takes four times as long to fetch. So it is "
    "bound by weight memory, and no longer by the matrix unit."
)
_WEIGHTS_ONLY = (
    "ours waits for almost nothing but weights, so it gains nearly the whole factor. The paper's LSTMs wait for other things as well."
)
_OTHER_LIMITS = "at four times the clock it is bound by weight memory and the host link, which are as fast as before."
_WITHOUT_CNN1 = "ours is a mean without CNN1, and our LSTMs wait for almost nothing but weights."
_OTHER_NETWORK = (
    "its shapes are not published, and the published statements about it contradict each other. Ours is another network of its kind, with "
    "as many layers of each sort and as many weights. Only the kinds of losses can be compared."
)
_LINK = (
    "cycles that wait for the host link gain nothing: a seventh of MLP1's on TPU v1, a third on TPU′. MLP1 is a third of the weighted mean."
)
_INPUT = "a seventh of its cycles wait for its input already, and the host link is no faster."


def _for(key: str, rows: tuple[str, ...], columns: tuple[str, ...], way: str, reason: str) -> dict[tuple[str, str, str, str], str]:
    return {(key, row, column, way): reason for row, column in product(rows, columns)}


REASONS: Mapping[tuple[str, str, str, str], str] = {
    **_for("table_3", ("4 weight stall",), ALL, "more", _SHARES),
    **_for("table_3", ("6 non-matrix",), ALL, "less", _HIDDEN),
    **_for("table_3", ("7  RAW stalls", "8  input stalls"), ALL, "less", _BLOCKS),
    **_for("table_3", ("8  input stalls",), ALL, "more", _FIRST_INPUT),
    **_for("table_3", ("1 array active", "2  useful MACs"), ("CNN0",), "more", _PRODUCTION),
    **_for("table_3", ("6 non-matrix",), ("CNN0",), "less", _PRODUCTION),
    **_for("table_3", ("9 TOPS",), ("CNN0",), "less", _COUNTERS),
    **_for("table_3", ("9 TOPS",), ("LSTM0",), "more", _LSTM0),
    **_for("table_3", ("9 TOPS",), ("LSTM1",), "more", _LSTM1),
    **_for("table_3_plain", ("1 array active", "2  useful MACs", "8  input stalls", "9 TOPS"), ("CNN0",), "less", _IN_TURN),
    **_for("table_3_plain", ("3  unused MACs", "6 non-matrix", "7  RAW stalls"), ("CNN0",), "more", _IN_TURN),
    **_for("table_3_plain", ("7  RAW stalls",), ALL, "less", _BLOCKS),
    **_for("table_3_plain", ("9 TOPS",), ("MLP1",), "less", _MLP1_COUNTERS),
    **_for("table_3_plain", ("4 weight stall",), ("LSTM1",), "less", _SHAPES),
    **_for("table_3_plain", ("6 non-matrix", "8  input stalls", "9 TOPS"), ("LSTM1",), "more", _SHAPES),
    **_for("stream", ("9 TOPS",), ALL, "more", _STREAM),
    **_for("stream", ("8 input stalls",), ALL, "less", _CROSSED),
    **_for("stream", ("9 TOPS",), ("LSTM0",), "more", _LSTM0),
    **_for("stream", ("9 TOPS",), ("LSTM1",), "more", _LSTM1),
    **_for("table_7", ("error in cycles",), ALL, "less", "the shapes were chosen to have the published weights and fill."),
    **_for("table_7", ("error in cycles",), ("CNN0",), "more", _COUNTERS),
    **_for("table_7", ("error in cycles",), ("LSTM0",), "more", _LSTM0),
    **_for("table_7", ("error in cycles",), ("LSTM1",), "more", _LSTM1),
    **_for("table_8", ("unified buffer",), ALL, "less", _BUFFER),
    **_for("table_8", ("unified buffer",), ("CNN0",), "more", _BORDERS),
    **_for("roofline", ("intensity", "roof there"), ALL, "less", _PADDING),
    **_for("roofline", ("intensity", "roof there"), ("CNN0",), "less", _HALVES),
    **_for("roofline", ("share of the roof",), ALL, "more", _HIDDEN),
    **_for("roofline", ("reached", "share of the roof"), ("CNN0",), "less", _COUNTERS),
    **_for("roofline", ("reached", "share of the roof"), ("LSTM0",), "more", _LSTM0),
    **_for("roofline", ("reached", "share of the roof"), ("LSTM1",), "more", _LSTM1),
    **_for("table_4", ("TPU",), ALL, "more", _HOST),
    **_for("table_4", ("TPU, host 21 % more",), ALL, "more", _HOST_TIME),
    **_for("figure_11", ("512×512 unit", "512×512, accumulators ×4"), ("LSTM1",), "less", _FOUR_STEPS),
    **_for("figure_11", ("512×512 unit", "512×512, accumulators ×4"), ("CNN0",), "less", _QUARTER),
    **_for("figure_11", ("weight memory ×4",), ("MLP1",), "less", _INPUT),
    **_for("figure_11", ("weight memory ×4",), ("LSTM0", "LSTM1"), "more", _WEIGHTS_ONLY),
    **_for("figure_11", ("clock ×4", "clock and accumulators ×4"), ("CNN0",), "less", _OTHER_LIMITS),
    **_for("tpu_prime", ("geometric mean", "weighted mean"), ALL, "more", _WITHOUT_CNN1),
    **_for("tpu_prime", ("geometric mean", "weighted mean"), ALL, "less", _LINK),
}
"""By section, row, column, and whether ours is more or less."""


def with_reasons(section: Section) -> Section:
    """The section, each large difference with its reason, or `UNKNOWN`."""
    return replace(section, figures=tuple(_with_reason(section.key, figure) for figure in section.figures))


def _with_reason(key: str, figure: Figure) -> Figure:
    if not figure.large or figure.difference is None:
        return figure
    way = "more" if figure.difference > 0 else "less"
    if (application := published().applications.get(figure.column.lower())) is not None and application.qualitative:
        return replace(figure, reason=_OTHER_NETWORK)
    own, general = ((key, figure.row, column, way) for column in (figure.column, ""))
    return replace(figure, reason=REASONS.get(own) or REASONS.get(general) or UNKNOWN)

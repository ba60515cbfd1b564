"""Why our figures differ from the paper's, where they differ much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from tpucc.paper.figures import Figure, Section
from tpucc.paper.published import published

ALL = ("",)
"""Every column that has no reason of its own."""
UNKNOWN = "not explained."
_SHARES = "rows 1, 4, 5 and 6 share 100 %, and less of ours is row 6. The tiles take the same time, whatever else goes on."
_HIDDEN = (
    "our compiler hides what follows a layer behind the fetches of the next one's tiles, and most of the output behind the last layer. "
    "Programs without that have a row 6 like the paper's: see the next section."
)
_BLOCKS = (
    "the paper's matrix unit waits until the layer before is complete. Ours waits for the columns that it needs next, which are there "
    "mostly. For the LSTMs the paper's rows 7 and 8 add up to more than row 6, so that they count some cycles of other rows too."
)
_FIRST_INPUT = (
    "our program is one batch, whose input must cross the host link before the first product. In a stream of batches it would cross "
    "during the batch before."
)
_STREAM = (
    "weight memory never rests in a stream, and its roof is all that is left. The paper's server doesn't say how far it overlaps batches."
)
_CROSSED = "in a stream the input crosses during the batch before, so that nothing waits for it. The paper's counters saw such waits."
_PRODUCTION = (
    "the paper's production run reaches 93.7 % of the peak (row 9), its counters 78.2 %. Our convolutions overlap more with what follows "
    "them than those counters say, as that run does."
)
_COUNTERS = (
    "the paper's row 9 is a production run at 93.7 % of the peak, while its counters have 78.2 % useful cycles, which are 71.7 TOPS. One "
    "set of rules can't agree with both."
)
_SHAPES = "its shapes other than 600×600 are not published."
_LSTM0 = "ours waits for little but weights, whose roof is 2 × 64 × 34 GB/s = 4.35 TOPS; the paper's LSTM0 spends 17.9 % elsewhere (row 6)."
_LSTM1 = (
    "ours reaches the roof of its padded tiles (59 multiply-accumulates a fetched byte: 4.0 TOPS), and nothing published says what keeps "
    f"the paper's below: {_SHAPES}"
)
_IN_TURN = (
    "each layer waits for the last activation of the one before it, 16 times; with -O2 two halves of the batch take turns. The 48 channels "
    "of its input leave most of a tile empty; with -O2 patches fill it."
)
_MLP1_COUNTERS = "the paper's row 9 is from production; its counters' row 2 is 8.6 TOPS."
_PADDING = "tiles are fetched whole: the matrices fill 88.5 % of MLP1's and 61 % of LSTM1's, and the rest is padding."
_HALVES = (
    "each weight tile is fetched for each half of the batch, since the halves take turns: one's activation overlaps the other's products. "
    "That still lies above the ridge."
)
_BUFFER = (
    "ours keeps what will still be read of one batch, and reuses the rest. What the paper's buffers hold isn't published: MLP0's 11 MiB "
    "would be 28 activations of 200×2000."
)
_BORDERS = "two feature maps live at the same time, each with its borders of zero points: 8 × 21 × 21 rows."
_HOST = (
    "the paper's figure is of a server that answers 99 % of its requests within 7 ms, with its host's work; ours is the device alone, "
    "batch after batch."
)
_HOST_TIME = "table 5 counts the host's transfers only: not its own part of the application, nor the queue that keeps 99 % within 7 ms."
_FOUR_STEPS = (
    "four steps that take four times as long each, instead of nine: 9 ÷ 16 of the speed, as the paper's own example of 18 against 32 µs. "
    "“Slightly degrades” is its mean of all applications."
)
_QUARTER = (
    "its layers have 256 channels in and out, so that a 512×512 tile is a quarter full and takes four times as long to fetch. It is no "
    "longer bound by the matrix unit but by weight memory."
)
_WEIGHTS_ONLY = (
    "ours waits for little but weights, so that nearly all of the factor arrives; the paper's LSTMs wait for other things as well."
)
_OTHER_LIMITS = "at four times the clock it is bound by weight memory and the host link, which are as fast as before."
_WITHOUT_CNN1 = "ours is a mean without CNN1, and our LSTMs wait for little but weights."
_OTHER_NETWORK = (
    "its shapes are not published, and what is said of it contradicts itself. Ours is another network of its kind, with as many layers of "
    "each sort and as many weights: only what the losses are can be compared."
)
_LINK = (
    "what waits for the host link gains nothing: a seventh of MLP1's cycles on TPU v1, a third on TPU′. MLP1 is a third of the weighted "
    "mean."
)
_INPUT = "a seventh of its cycles waits for its input already, and the host link is no faster."


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

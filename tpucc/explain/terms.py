"""The definitions of words that explain themselves where they stand.

The definitions of `GLOSSARY` are those of the documentation's glossary; those of the accounting are its rows' own.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.explain.accounting import ROWS
from tpucc.target import Target

GLOSSARY: Mapping[str, str] = {
    "block": (
        "1. a column block; 2. a parameter block; 3. of a product: the sums of one group or one chunk in one column block. If two "
        "fit the accumulators, the activation unit empties one while the matrix unit fills the next"
    ),
    "chunk": (
        "rows of a group whose sums leave the accumulators together: the activation unit empties one chunk while the matrix unit "
        "fills the next"
    ),
    "critical path": (
        "a chain of work that is as long as the program, each part beginning when the one before ends. The program takes less "
        "time only if a part of it does"
    ),
    "group": (
        "1. rows that a product takes through all its tiles before the next rows, because the accumulators don't hold the sums of "
        "more; each tile is fetched once for each group. 2. of a convolution: channels that see only each other"
    ),
    "intensity": "multiply-accumulates for each byte of weights that is fetched; of a dense layer with full tiles, its batch",
    "lower bound": (
        "of an allocation: the largest number of rows that are alive at one instruction. Where there is room, the compiler takes more: "
        "rows that the host link still reads or writes are not used again, so that nothing waits for the link"
    ),
    "MAC": "multiply-accumulate: a product that is added to a sum; it counts as two operations",
    "parameter block": "the numbers that the activation unit uses for one column block: biases, multipliers, zero points, bounds",
    "peak": (
        "of an allocation: the number of the highest row that a buffer takes, plus one. Rows that are free below it count, so it may be "
        "more than is ever in use at one time"
    ),
    "pitch": "of a walk: the rows from one outer step to the next; its stride is the rows from one inner step to the next",
    "ridge": "the intensity at which weight memory and the matrix unit are equally fast: 1,349 on TPU v1",
    "TOPS": "tera-operations per second: 10¹² multiplications and additions a second; those of the host aren't counted",
    "unified buffer": "the memory on the device that holds activations: 98,304 rows on TPU v1, 24 MiB",
    "walk": (
        "the rows that an instruction visits, in two loops: so many outer steps, each of so many inner steps. A plain stretch of "
        "rows has one outer step"
    ),
}
AT_ONCE = "needed at once"
"""What pictures and cards call the lower bound."""
SPOKEN = ("parameter block", "block", "chunk", "group", "pitch", "walk")
"""Words of sentences about layers and instructions; one that is a part of another stands after it."""
TERMS: Mapping[str, str] = {
    **{row.name: row.meaning for row in ROWS.values()},
    "waits": "cycles in which the matrix unit doesn't multiply: the sum of the rows of waits",
    "mostly for": "the root of most of these waits: what is at work at the end of the chain of waits",
    "end to end": (
        "the time of a batch from the model's inputs to its outputs: the host's work before the device starts, the device with its link, "
        "and the host's work after. What the host takes is assumed: host_step_seconds, and 1 / host_elements_per_second for each value"
    ),
    "device": "from the first instruction's start until everything has finished, at the target's clock",
    "speed": f"{GLOSSARY['TOPS']}. Each multiply-accumulate of the model is two, also on the activation unit; padding isn't counted",
    "TOPS": GLOSSARY["TOPS"],
    "bottleneck": f"the limit that takes most of the critical path: {GLOSSARY['critical path']}",
    "in a stream": "each batch of many: its inputs arrive during the batch before, its outputs leave during the one after",
    "work": f"{GLOSSARY['MAC']}; those of the whole batch that the device computes, without padding",
    "instructions": "all instructions of the program, synchronisations included",
    "weight tiles": (
        "pieces of the weight matrices, each as large as the matrix unit, and computed values that the host writes in such pieces; each is "
        "counted once, however often it is fetched"
    ),
    "tiles": "distinct weight tiles that the layer's products use",
    "unified buffer": f"{GLOSSARY['unified buffer']}. What is {AT_ONCE} is the lower bound {GLOSSARY['lower bound']}",
    "host transfers": "bytes that cross the link between host and device, spills included",
    "layer": "an operator of the layer graph: integers in, integers out; or, of the kind host, a step that the host computes in float32",
    "line": "the line of the source that the layer comes from",
    "cycles": "the cycles that the accounting gives to the layer; the layers' and the input's add up to the program's",
    "share": "of the program's cycles",
}
"""The words of tables, cards and legends."""


COLOURS = (
    "blue: values of layers whose products the matrix unit computes, though the activation unit writes them; "
    "green: values of layers of the activation unit alone; grey: values from the host, and copies of inputs"
)
"""What the colours of the buffers say."""


def lanes(target: Target) -> dict[str, str]:
    """What each lane of the timeline shows."""
    return {
        "host": "the host: transfers between its memory and the unified buffer, and the steps that it computes",
        "weights": f"weight memory: weight tiles on their way to the FIFO, {target.tile_fetch_cycles:,} cycles each",
        "shift": f"weight tiles on their way from the FIFO into the matrix unit, {target.tile_shift_cycles:,} cycles each",
        "matrix": "the matrix unit: products; hatching is waiting, and says for what",
        "activation": (
            "the activation unit: it makes integers of finished sums, applies functions, and writes to the unified buffer. A part of it, "
            "the vector unit, computes rows of the unified buffer without the matrix unit: it adds, multiplies, pools and copies"
        ),
    }

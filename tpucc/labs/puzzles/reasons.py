"""What the verifier's rules mean to somebody who meets them for the first time."""

from __future__ import annotations

from collections.abc import Mapping

_RACE = "Engines work at the same time, each on its own instructions in order. Between two of them, a synchronize says who waits. "
WHY: Mapping[str, str] = {
    "V0203": "This instruction has no such operand.",
    "V0301": "The rows begin at the first one that is named, and there are as many as the count says.",
    "V0302": "The accumulators of this puzzle have fewer rows than the product has. Compute it in parts.",
    "V0303": "x.0 is the first row of x in host memory, x.0+1 the second. One transfer stays inside inputs, or inside outputs.",
    "V0304": "Tiles are counted from 0.",
    "V0305": "Parameter blocks are counted from 0.",
    "V0306": "rows, inner and outer are counts: at least 1.",
    "V0307": "Each result needs a row of its own: look at the stride of the destination.",
    "V0401": "The unified buffer is empty at the start. read_host_memory fills rows, and so do activate and vector.",
    "V0402": "Accumulators hold nothing before a multiply without `accumulate` has written them.",
    "V0403": "Bias, multiplier and table lie in a parameter block; set_configuration says which one holds from here on.",
    "V0404": "Rows to use hold nothing until write_host_memory has written them.",
    "V0501": "An activated sum is complete. The next sum begins with a multiply without `accumulate`.",
    "V0502": "A multiply without `accumulate` begins a new sum there, and the old one is lost before activate has read it.",
    "V0503": "A sum that nobody reads is work for nothing, or an activate is missing.",
    "V0601": "`switch` takes the oldest tile from the weight FIFO. read_weights puts one there, and each is taken once.",
    "V0602": "A tile's place in the FIFO is free again when a multiply with `switch` has taken the tile.",
    "V0603": "Every tile that is fetched is used: no multiply takes this one.",
    "V0604": "The first multiply needs `switch`: it takes a tile from the FIFO.",
    "V0703": "A vector instruction may write over what it reads only if it walks both alike; any other needs rows of its own.",
    "V0801": f"{_RACE}Whoever reads a row must wait until it is written.",
    "V0802": f"{_RACE}Whoever overwrites a row must wait until it has been read.",
    "V0803": f"{_RACE}Of two who write a row, the second must wait for the first.",
    "V0901": "The bias is so large that a sum could leave the range of int32.",
    "V0903": "Zero points and clamps lie between -128 and 127.",
    "V1001": "A program ends with halt, which stands nowhere else.",
    "V1002": "write_host_memory writes an output's rows; all of them must be written.",
    "V1003": "An output's row is written once.",
    "V1004": "Inputs stay as they are.",
    "E0710": "The handout's table has the instructions.",
    "E0751": "A tile program has no fetches, no waits and no halt: tpucc adds them.",
    "E0754": "Rows of a buffer and of a group must be written before they are read.",
    "E0755": "A sum begins with a multiply without `accumulate`, and ends with an activate.",
    "E0756": "A multiply needs tile= and `switch`; activate and vector need set_configuration before them.",
    "E0758": "write_host_memory writes an output's rows, each once.",
}
"""The first sentence of help, by the code of a rule or of an error."""

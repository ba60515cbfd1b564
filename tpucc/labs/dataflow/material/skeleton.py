"""Lab 13: what is live, what is held. Write `live`, `held` and `clean`; helpers of your own are welcome in this file."""

INPUTS = {{inputs}}  # the host's rows 0 to INPUTS - 1 have new values for each part
KEPT = {{kept}}  # rows of the buffer that the host keeps
ANYWHERE = {{anywhere}}  # whether the host may stop after any part, or only after one that no part follows


def live(listing, parts):
    """For each instruction of the listing, the rows of the buffer that are live after it.

    A part is a tuple: the number of its first instruction, the number after its last one, and the parts that may come next.
    """
    return [set() for _ in listing]


def held(listing, parts):
    """For each instruction of the listing, what is certainly held before it: pairs of a row of the buffer and a row of the host."""
    return [set() for _ in listing]


def clean(listing, parts):
    """The numbers of the instructions that stay. This one leaves out nothing."""
    return list(range(len(listing)))

"""Lab 8: break it. Write `violations` and `programs`; helpers of your own are welcome in this file.

The term's rule is "{{name}}":

{{told}}
"""


def violations(program):
    """The numbers of the instructions that break the rule, counted from 0; an empty list for a program that keeps it.

    `program["instructions"]` is a list of dicts, one for each instruction (see the handout); `program["fifo"]` is the number of tiles that
    the FIFO holds.
    """
    return []


def programs():
    """Listings, at most {{programs}}: some that break the rule and no other, and some that break none.

    Each wrong detector of the tests must be wrong on one of them.
    """
    return [GOOD]


GOOD = """
.target tiny
.input x 2x4
.output y 2x4

    read_host_memory host=x.0 ub=0 rows=2
    write_host_memory ub=0 host=y.0 rows=2
    halt
"""

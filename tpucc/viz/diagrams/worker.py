"""The child process that lays out with pygraphviz: a list of DOT texts in, a list of layouts out, both as JSON.

It is run as a file of its own, so that a crash or a hang in Graphviz can't take the compiler with it, and imports nothing of tpucc.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    from pygraphviz import AGraph  # type: ignore[import-untyped,unused-ignore]

    sources = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    found = [AGraph(string=source).draw(format="json0", prog="dot").decode("utf-8") for source in sources]
    sys.stdout.buffer.write("\n".join(found).encode("utf-8"))


if __name__ == "__main__":
    main()

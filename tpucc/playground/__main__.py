"""`python -m tpucc.playground FOLDER`: serves a built playground with this Python behind it."""

from __future__ import annotations

import argparse
from pathlib import Path
from threading import Event

from tpucc.playground.server import Server


def main() -> None:
    """Serves the folder that the command line names until Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m tpucc.playground", description="Serves a playground with this Python behind it.")
    parser.add_argument("folder", type=Path, help="what docs/playground/build_playground.py has built")
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (default: a free one)")
    asked = parser.parse_args()
    server = Server(asked.folder, asked.port)
    print(f"open {server.address} in a browser; Ctrl-C ends it", flush=True)
    try:
        with server.serving():
            Event().wait()
    except KeyboardInterrupt:
        print("\nstopped")


if __name__ == "__main__":
    main()

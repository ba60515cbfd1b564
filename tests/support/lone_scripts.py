"""Scripts of the page, opened in a browser without the rest of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tpucc.see.kit import SCRIPTS as KIT
from tpucc.see.kit import page_files

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import OpenPage

MODEL: dict[str, Any] = {
    "box_layers": {},
    "beside": {},
    "cycles": 1000,
    "lines": [f"Line {number}" for number in range(1, 31)],
    "machine": {"mxu": 4, "weight_tiles": 9, "clock_hz": 1e6},
    "layers": [
        {
            "name": "fc", "weights": [9, 7], "origin": 0, "groups": 1, "matrices": 1,
            "fills": [[0, 4, 4, 16], [1, 4, 3, 12], [2, 4, 4, 16], [3, 4, 3, 12], [4, 1, 4, 4], [5, 1, 3, 3]],
        }
    ],
    "rows": [{"name": name, "meaning": f"{name} it is"} for name in ("array active", "weights", "shift")],
    "calls": {"name": [], "line": [], "step": [], "of": [[]]},
    "lanes": {name: f"the {name}" for name in ("host", "weights", "shift", "matrix", "activation")},
    "spoken": {"parameter block": "numbers", "block": "sums", "chunk": "rows"},
    "terms": {"unified buffer": "memory", "lower bound": "bound", "colours": "meanings"},
    "buffers": [{"name": "X.i8", "layer": 0}],
    "texts": ["nop", "read_weights Tile"],
    "code": {"count": 2, "start": [0, 5], "end": [0, 13], "layer": [0, 0], "buffers": [[-1, -1]]},
    "layer_spans": [],
    "fetches": [],
    "fetchOf": [-1, -1],
    "diagrams": {},
    "hosts": [],
    "rewrites": [],
    "origins": [],
    "waits": {
        "roots": [{"meaning": "weights"}, {"meaning": "shift"}],
        "start": [0, 10, 50], "end": [3, 40, 52], "root": [0, 1, 0], "instruction": [1, 1, 0],
    },
}  # fmt: skip
STUBS = "const insides = {}; const held = []; const selection = { hold: (wanted) => held.push(wanted) };"


def with_scripts(open_page: OpenPage, *names: str, body: str = "", stubs: str = STUBS, **other: Any) -> Page:
    """A page with these scripts alone, and the model, of which some parts are `other`."""
    parts = [
        f"const model = {json.dumps({**MODEL, **other})};",
        stubs,
        *(page_files(f"tpucc.see.{'kit' if name in KIT else 'page'}", f"js/{name}.js") for name in ("dom", *names)),
    ]
    scripts = "\n".join(parts)
    return open_page(f'<!doctype html><meta charset="utf-8"><title>alone</title>{body}<script>"use strict";\n{scripts}</script>')

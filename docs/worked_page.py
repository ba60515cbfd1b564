"""The diffs that show how something is added to tpucc, with the numbers that their lines have now; and the page that shows them."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # the tests apply the same diffs
from tests.support.worked import is_applied, renumbered  # noqa: E402

PAGE = "adding.md"
WORKED = ("operator", "pass", "instruction", "target", "lab")
"""The diffs of docs/worked, in the order in which the page shows them."""
BLOCK = re.compile(r"^```diff\n.*?^```$", re.DOTALL | re.MULTILINE)


def worked_pages() -> Mapping[str, str]:
    """The diffs and the page by path below docs/. A diff that the package has already stays as it is: `make walks` tries such a copy."""
    diffs = {f"worked/{name}.diff": (DOCS / "worked" / f"{name}.diff").read_text("utf-8") for name in WORKED}
    made = {path: diff if is_applied(diff) else renumbered(diff) for path, diff in diffs.items()}
    blocks = iter(made.values())
    return {**made, PAGE: BLOCK.sub(lambda _: f"```diff\n{next(blocks)}```", (DOCS / PAGE).read_text("utf-8"))}

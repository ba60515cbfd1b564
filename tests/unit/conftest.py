"""What the tests of single parts have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tpucc.viz.diagrams.render import VARIABLE


@pytest.fixture(autouse=True, scope="module")
def layouts_without_a_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Most tests that compile don't look at pictures, and Graphviz works in two processes for each."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.path.stem.startswith(PICTURES):
            patch.setenv(VARIABLE, "builtin")
        yield


PICTURES = ("test_viz_", "test_pictures", "test_page", "test_notebook", "test_quality")

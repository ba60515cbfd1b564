"""The kit under all pages: one head, one scope for scripts, data that ends no element, and scales with round values."""

from __future__ import annotations

import json
import re

from tests.support.cases import each
from tests.support.pictures import HOSTILE
from tpucc.see.charts.chart import Scale, foot_axis, log_scale
from tpucc.see.kit import SCRIPTS, document, embedded, page_files, scripts, shell
from tpucc.see.svg import Markup
from tpucc.see.waves import random_work, waves_page

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'"


def test_a_page_may_load_nothing_and_its_title_is_text() -> None:
    pages = [shell(HOSTILE, "body", style=""), document("tpucc.see.comparison", HOSTILE, HOSTILE, []), waves_page(random_work(2, 2, 1))]
    for page in pages:
        assert page.count(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">') == 1
        assert HOSTILE not in page
    assert "<script" not in pages[0], "a page without scripts has none"


def test_scripts_share_a_scope_and_lose_their_comments_alone() -> None:
    found = scripts("tpucc.see.page", ("dom", "theme", "list"))
    assert found.startswith('"use strict";\n(() => {\n')
    assert "/**" not in found
    plain = "\n".join([*(page_files("tpucc.see.kit", f"js/{name}.js") for name in SCRIPTS), page_files("tpucc.see.page", "js/list.js")])
    code = [line for line in re.sub(r"/\*\*.*?\*/", "", plain, flags=re.DOTALL).splitlines() if line.strip()]
    assert [line for line in found.splitlines()[2:-1] if line.strip()] == code


def test_data_ends_no_element_and_is_read_back() -> None:
    values = {"name": "</script><script>", "number": 3}
    found = embedded(values)
    assert found.count("<") == 2
    assert json.loads(re.sub("<[^>]*>", "", found)) == values


@each([(0.3, 40.0), (1.0, 1000.0), (2.0, 2.1), (1e-9, 1e3)])
def test_a_logarithmic_scale_has_its_values_and_a_few_round_ones(low: float, high: float) -> None:
    scale = log_scale([low, high], 100, 500)
    assert 100 < scale(low) < scale(high) < 500
    assert scale(low) - 100 == 500 - scale(high) or abs(scale(low) - 100 - (500 - scale(high))) < 1e-6
    ticks = scale.ticks(7)
    assert 3 <= len(ticks) <= 7
    assert all(scale.low <= tick <= scale.high for tick in ticks)


def test_an_axis_leaves_out_texts_that_would_touch() -> None:
    drawn = foot_axis(Scale(0, 10, 0, 100), 50, "cycles", [0, 1, 5], ["first", "second", "third"])
    assert [word in drawn for word in ("first", "second", "third", "cycles")] == [True, False, True, True]
    gridded = foot_axis(Scale(0, 10, 0, 100), 50, "", [0, 1, 5], ["first", "second", "third"], 10)
    assert (Markup(gridded).count("<line"), drawn.count("<line")) == (4, 3)

"""The generated pages are what the code says, and links lead somewhere. What stands in blocks is tested in `test_blocks.py`."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import tpucc
from tpucc.cli.commands import group as command_line
from tpucc.explain.quantities import rate_text

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def stale_pages(*options: str) -> str:
    """What the generator says of pages that aren't what the code says."""
    command = [sys.executable, ROOT / "docs" / "generate.py", "--check", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == bool(result.stdout.strip()), result.stderr
    return result.stdout.strip()


def test_the_reference_is_up_to_date() -> None:
    """The pages that are tables of the code's; `make pages` checks commands and the figures of the programs."""
    assert stale_pages("--tables") == ""


@pytest.mark.soak
@pytest.mark.parametrize("options", [[], ["--quick"]], ids=["all", "quick"])
def test_all_of_the_reference_is_up_to_date(options: list[str]) -> None:
    assert stale_pages(*options) == ""


def test_a_session_is_what_is_typed_and_printed_and_no_file() -> None:
    spec = importlib.util.spec_from_file_location("terminal_blocks", ROOT / "docs" / "terminal_blocks.py")
    assert spec is not None
    assert spec.loader is not None
    sessions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sessions)
    page = "Read `model.tpu`:\n\n```text\n$ tpucc --version\n```\n\nWrite `other.tpu`:\n\n```tpu\nmodel\n```\n"
    with sessions.as_typed(page):
        assert not Path("model.tpu").exists()
        assert Path("other.tpu").read_text("utf-8") == "model\n"
    book = (ROOT / "docs/cli.md").read_text("utf-8")
    debugged = book[book.index("## Step by step") : book.index("## Files that compile")]
    assert "$ tpucc debug" in debugged
    assert sessions.with_outputs(debugged) == debugged, "what stands behind the prompt is typed"


@pytest.mark.soak
def test_only_the_machines_bits_are_the_same_everywhere() -> None:
    """The tables of docs/floats.md on this computer: the last column is that of the page."""
    command = [sys.executable, ROOT / "docs" / "blas_bits.py"]
    here = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = (ROOT / "docs/floats.md").read_text("utf-8")
    last = [
        re.findall(r"(\w{8})$", text, re.MULTILINE)
        for text in (here, page[page.index("kernel  ") : page.index("All rows come from one computer")])
    ]
    assert len(last[0]) == 12
    assert last[0] == last[1]


def test_links_lead_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))]
    assert len(links) > 50
    assert [(str(page.relative_to(ROOT)), link) for page, link in links if not (page.parent / link).exists()] == []


def test_what_is_quoted_stands_there() -> None:
    """The page of questions quotes other pages."""
    page = ROOT / "docs/instructors/questions.md"
    rows = [row for row in page.read_text("utf-8").splitlines() if re.search(r"\]\(\.\./", row)]
    assert len(rows) == 12
    for row in rows:
        texts = [" ".join((page.parent / link).read_text("utf-8").split()) for link in re.findall(r"\]\((\.\./[^)#]+)", row)]
        quoted = re.findall(r'"([^"]+)"', row)
        assert quoted, row
        assert [words for words in quoted if not any(words in text for text in texts)] == []


CONTENTS = (ROOT / "docs/README.md").read_text("utf-8").partition("\n## Teach with it\n")[0]


def chapters() -> list[list[str]]:
    """The pages of each numbered item of the contents before those for teaching, with the pages of the items below it."""
    found: list[list[str]] = []
    for mark, item in re.findall(r"^(\d+\.| +-) (.*(?:\n(?! *[-\d#]).+)*)", CONTENTS, re.MULTILINE):
        names = re.findall(r"\]\((\w[\w-]*\.md)\)", item)
        if mark.endswith("."):
            found += [[name] for name in names]
        else:
            found[-1] += names
    return found


CHAPTERS = chapters()


@pytest.mark.parametrize("pages", CHAPTERS, ids=lambda pages: pages[0])
def test_a_chapter_has_ten_questions_and_three_exercises_with_solutions(pages: list[str]) -> None:
    """On its pages together; the solutions of a page have its name."""
    asked = solved = 0
    for page in pages:
        text, _, questions = (ROOT / "docs" / page).read_text("utf-8").partition("\n## Questions\n")
        asked += len(re.findall(r"^<details><summary>.+</summary>", questions, re.MULTILINE))
        assert questions.count("</details>") == len(re.findall(r"^<details>", questions, re.MULTILINE))
        exercises = len(re.findall(r"^\d\. \*\*", text.partition("\n## Exercises\n")[2], re.MULTILINE))
        solutions = (ROOT / "docs/instructors/solutions" / page).read_text("utf-8") if exercises else ""
        assert len(re.findall(r"^## ", solutions, re.MULTILINE)) == exercises
        solved += exercises
    assert (asked, solved) == (10, 3)


def test_anchors_that_links_name_are_there() -> None:
    """A heading of the page, or an `id` in it, as GitHub makes them."""
    links = [(page, *found) for page in PAGES for found in re.findall(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", page.read_text("utf-8"))]
    wrong = [
        f"{page.relative_to(ROOT)}: {to}#{part}" for page, to, part in links if part not in anchors((page.parent / to) if to else page)
    ]
    assert len(links) > 50
    assert wrong == []


def anchors(page: Path) -> set[str]:
    text = page.read_text("utf-8")
    heads = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads} | set(re.findall(r'id="([^"]+)"', text))


def test_the_book_says_what_a_tpu_is_before_how_it_is_built() -> None:
    order = [pages[0] for pages in CHAPTERS]
    assert order[:2] == ["first-model.md", "tpu.md"]
    assert {"systolic.md", "machine.md", "architecture.md"} <= set(order[2:])


def test_commands_of_instructors_pages_can_be_typed() -> None:
    """They take too long to be run here: names of commands and options are checked."""
    pages = sorted(ROOT.glob("docs/instructors/**/*.md"))
    lines = [line for page in pages for line in re.findall(r"^ *(?:\$|- run:|-) tpucc (.+)$", page.read_text("utf-8"), re.MULTILINE)]
    assert len(lines) >= 10
    for line in lines:
        command: click.Command = command_line
        words = shlex.split(line.replace("…", "").replace("$LAB5_SEED", "1"))
        while isinstance(command, click.Group):
            name, found, words = command.resolve_command(click.Context(command), words)
            assert found is not None, line
            command = found
        command.make_context(name, words)


def test_the_glossary_is_in_order_and_says_everything_once() -> None:
    text = (ROOT / "docs/glossary.md").read_text("utf-8")
    words = [word.casefold() for word in re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)][1:]
    assert len(words) > 50
    assert words == sorted(set(words))


def test_the_figures_of_the_first_model_are_what_it_does() -> None:
    text = (ROOT / "docs/first-model.md").read_text("utf-8")
    (program,) = re.findall(r"```tpu\n(.*?)```", text, re.DOTALL)
    small, large = (tpucc.compile_source(program.replace("f32[8,", f"f32[{rows},")).stats for rows in (8, 800))
    assert f"does {rate_text(small['tops'] * 1e12)} (10" in text
    assert f"profile again: {rate_text(large['tops'] * 1e12)}." in text
    assert (small["bottleneck"], large["bottleneck"]) == ("weight memory", "host link")


def test_nothing_is_tied_to_one_machine() -> None:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = [
        ROOT / n for n in names if n.endswith((".py", ".md", ".toml", ".tpu", ".lark", ".txt", "Makefile", ".html", ".css", ".js", ".json"))
    ]
    found = [str(path) for path in texts if path.exists() and re.search(r"/(home|root|Users)/\w", path.read_text("utf-8"))]
    assert found == []


def test_figure_11_is_drawn_from_its_table_and_agrees_with_the_papers_page() -> None:
    spec = importlib.util.spec_from_file_location("sweep_pictures", ROOT / "docs" / "sweep_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert (ROOT / "docs/pictures/figure-11.svg").read_text("utf-8") == made.figure_svg()
    chapter, paper = ((ROOT / "docs" / page).read_text("utf-8") for page in ("sweeps.md", "reference/paper.md"))
    means, speedups = made.weighted_means(), made.speedups()
    for curve, (words, *_) in made.CURVES.items():
        assert f"| {words} | {' | '.join(f'{means[curve, factor]:.2f}' for factor in made.FACTORS)} |" in chapter
    columns = (("memory", 4.0), ("clock", 4.0), ("matrix", 0.5), ("matrix", 2.0))
    for name in {name for name, _, _ in speedups}:
        assert f"| {name.upper()} | {' | '.join(f'{speedups[name, curve, factor]:.2f}' for curve, factor in columns)} |" in chapter
    for title, curve, factor in (("weight memory ×4", "memory", 4.0), ("clock ×4", "clock", 4.0), ("512×512 unit", "matrix", 2.0)):
        cells = [cell.strip() for line in re.findall(rf"^\| {title} \|.*$", paper, re.MULTILINE) for cell in line.split("|")]
        assert {f"{speedups[name, curve, factor]:.2f}" for name, _, _ in speedups} <= set(cells)

"""The explanations of error codes: one page a code, for `tpucc explain` and the documentation.

A page is a Markdown file `CODE.md`: a first line `# CODE: title`, some prose (what happened and why), and an example under the headings
`## Wrong` and `## Mended`. The tests type both in: the first gives exactly this code (of a pass's graph, after
E0525), the second no error. Each kind of block says by its language what it is:

- `tpu`, `toml`, `asm`, `tile`, `graph`: a file, named by the paragraph before it (In `mine.toml`:), else `model` and this ending;
- `python`: run, or a file when the paragraph before names it so;
- `sh`: commands;
- `diff`: an edit of `model.asm`: lines that begin with `-` are replaced by those with `+`, between others that stay.

A line "`COMMAND` says:" before a quotation is a command too, and the quotation the first line that it prints, in which `…` may stand for
a part. Under `Mended` the files of `Wrong` are still there, and so are the names of its Python. Without commands of its own, it repeats
those of `Wrong`; where neither has any, `model.tpu` is compiled. Lines of blocks have at most 80 columns. The page of a verifier's rule
(`V…`) begins with the rule's own name and sentence: its file has only what follows. Pages of faults in tpucc (`E090…`) have no example; the
tests list them with the reason.
"""

from __future__ import annotations

from importlib import resources


def codes() -> list[str]:
    """Every code that has a page, in order."""
    names = (entry.name for entry in resources.files(__package__).iterdir())
    return sorted(name.removesuffix(".md") for name in names if name.endswith(".md"))


def explain(code: str) -> str | None:
    """The page of a code in Markdown; None when there is none."""
    page = resources.files(__package__) / f"{code}.md"
    if not code.isalnum() or not page.is_file():
        return None
    return _beginning(code) + page.read_text("utf-8")


def _beginning(code: str) -> str:
    """What a rule's page has of the rule. The verifier is imported only here: explaining a source's error doesn't need it."""
    if not code.startswith("V"):
        return ""
    from tpucc.isa.verify import RULES

    return f"# {code}: {RULES[code].name}\n\n{RULES[code].description}\n\n"

"""The page of a class's likeness: groups of submissions that are alike, with the lines in common, and what is unusual in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpucc.diagnostics import counted, listed, printable
from tpucc.labs.lab import Lab, Term
from tpucc.labs.likeness import ALIKE, Group, Pair, Statement, Submitted
from tpucc.see.kit import Section, document, soft
from tpucc.see.svg import NOTHING, Markup, escaped, joined, row, table, tag

SHOWN = 80
"""Lines in common that are shown of a pair."""
NAMED = 6
"""Submissions that a heading names."""
READING = (
    "Reasons for a talk, never a verdict. Two students may have had the same idea, the same book or the same friend. What the lab gives "
    "counts for nothing, and what many wrote counts for little. Names, comments and the order of statements don't count. Each submission "
    "of a group stands beside the one that it is most like."
)


def likeness_page(lab: Lab, term: Term, own: Sequence[Submitted], groups: Sequence[Group], earlier: int) -> str:
    """The page as HTML; `earlier` is the number of submissions of earlier terms that were compared, too."""
    beside = f", beside {counted(earlier, 'submission')} of earlier terms" if earlier else ""
    facts = f"{counted(len(own), 'submission')}{beside} · {counted(len(groups), 'group')} of submissions that are alike"
    return document(__package__, f"Likeness: lab {lab.number}, {term}", facts, list(_sections(own, groups)))


def _sections(own: Sequence[Submitted], groups: Sequence[Group]) -> Iterator[Section]:
    nothing = f"No two have {ALIKE} % of what they wrote in common."
    yield "alike", "Alike", joined([soft(READING), *(map(_group, groups) if groups else [soft(nothing)])])
    copied = [(each.name, words) for each in own for words in each.like]
    if copied:
        yield "own", "Like tpucc's own text", _table("submission", "nearly a copy of", copied)
    remarked = [(each.name, words) for each in own for words in each.remarks]
    if remarked:
        words = "Few solutions need code that is made or fetched while it runs, or long texts, in which code can be hidden."
        yield "unusual", "Unusual", joined([soft(words), _table("submission", "what", remarked)])
    if problems := [(each.name, each.problem) for each in own if each.problem]:
        yield "unread", "Not read", _table("submission", "why", problems)


def _table(head: str, what: str, rows: Sequence[tuple[str, str]]) -> Markup:
    """Rows of a submission's name and words; the name stands once."""
    shown = [(name if index == 0 or rows[index - 1][0] != name else "", words) for index, (name, words) in enumerate(rows)]
    return table((head, what), [row(escaped(printable(cell)) for cell in cells) for cells in shown], class_="words")


def _group(group: Group) -> Markup:
    names = [printable(name) for name in group.names]
    rest = [counted(len(names) - NAMED, "other")] if len(names) > NAMED else []
    head = tag("h3", escaped(listed([*names[:NAMED], *rest])))
    return joined([head, *map(_pair, group.pairs)])


def _pair(pair: Pair) -> Markup:
    one, other = pair.one, pair.other
    words = f"{pair.percent} % of the smaller one, {counted(len(pair.common), 'statement')} in common"
    names = tag("strong", escaped(f"{printable(one.name)} and {printable(other.name)}"))
    rows = [row((_line(one, left), _line(other, right))) for left, right in pair.common[:SHOWN]]
    more = soft(f"{len(pair.common) - SHOWN:,} more") if len(pair.common) > SHOWN else NOTHING
    body = table((one.name, other.name), rows, class_="lines")
    return tag("details", tag("summary", names, tag("span", escaped(words), class_="soft")), body, more)


def _line(of: Submitted, statement: Statement) -> Markup:
    """The first line of a statement, with its place."""
    text = of.lines.get((statement.file, statement.line), "") if of.lines is not None else ""
    return joined([tag("b", escaped(f"{printable(statement.file)}:{statement.line}")), tag("code", escaped(printable(text.strip())))])

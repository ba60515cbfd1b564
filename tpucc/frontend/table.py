"""The parser's table, stored beside the grammar: building it takes longer than all else that a small source asks for.

The file begins with a digest of what the table was made from, and a digest of what follows it. A file that doesn't begin so, or that lark
can't read, is not used: the table is built again. Its contents are numbers and strings, as Python keeps the constants of compiled modules:
reading them runs no code.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

GRAMMAR = Path(__file__).with_name("model.lark")
FORM = "1"
"""Changes when the form of the file does."""
LARGEST = 2**24
"""No table has so many bytes."""


def parser(start: str, *, folder: Path = GRAMMAR.parent, **given: Any) -> Lark:
    """The parser of the grammar from the rule `start`; `given` are its `postlex` and `transformer`.

    Its table is read from `folder` where a sound one is stored, else built, and stored there if the folder can be written to.
    """
    grammar = GRAMMAR.read_text("utf-8")
    key = _digest("\n".join((FORM, sys.implementation.cache_tag or "", lark.__version__, start, grammar)).encode())
    place = folder / f"{start}.table"
    return _stored(place, key, given) or _built(grammar, start, place, key, given)


def _stored(place: Path, key: bytes, given: dict[str, Any]) -> Lark | None:
    """The parser that the file at `place` gives; None when there is none, or when it is stale or damaged."""
    try:
        with place.open("rb") as stream:
            found, digest, body = stream.read(len(key)), stream.read(len(key)), stream.read(LARGEST)
        if found != key or digest != _digest(body):
            return None
        table = marshal.loads(body)
        load: Any = Lark._load_from_dict
        return cast(Lark, load(table["data"], table["memo"], **given))
    except Exception:  # whatever it is, the table can be built
        return None


def _built(grammar: str, start: str, place: Path, key: bytes, given: dict[str, Any]) -> Lark:
    made = Lark(grammar, parser="lalr", lexer="contextual", start=start, **given)
    with suppress(Exception):  # a folder that can't be written to, a full disk, another lark: the parser is there all the same
        data, memo = made.memo_serialize([TerminalDef, Rule])
        options = {name: value for name, value in data["options"].items() if name not in given}
        body = marshal.dumps({"data": data | {"options": options}, "memo": memo})
        _store(place, key + _digest(body) + body)
    return made


def _store(place: Path, content: bytes) -> None:
    """Writes the file in one step: another process that reads at the same time gets the old file or the new one."""
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=place.name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(name, 0o644)
        os.replace(name, place)
    except BaseException:
        os.unlink(name)
        raise


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()

"""What all text forms (graphs, tile programs, assembly) share: their version, bytes and strings in them, the longest number, and the errors
of lines, each at its place.

Bytes are base64 (RFC 4648) in lines of 1,024 characters. Strings are quoted; whatever a terminal or an editor could act on is escaped:
control, bidirectional and unpaired surrogate characters, line ends, the quote and the backslash.

The version is a comment in the first line of a file: `require_version` refuses a text of another version. A text without one, as it is
typed or printed by Python, is taken as being of this version.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import ParamSpec

from tpucc.diagnostics import Diagnostic, Label, LineError, ProgramError, Source, Span

TEXT_VERSION = 1
"""To be raised with every change after which a text that was written before can't be read, or means something else."""
_STAMP = re.compile(r"\ufeff?[;#] a text of tpucc, version (\d{1,99})\r?\n")
MOST_ERRORS = 20
"""At most so many errors of one text are shown."""
MAX_INTEGER_CHARACTERS = 20
"""Characters of the longest integer in a text, its sign included."""
WITHOUT_DATA = "E0760"
"""The error of a constant that is given only by its digest, where no model is named to take its values from."""
_LINE_BYTES = 768
_BLANKS = str.maketrans("", "", " \t\r\n")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LONG = {text[1]: character for character, text in _SHORT.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.?))|\"", re.DOTALL)
_P = ParamSpec("_P")


def stamped(text: str, comment: str) -> str:
    """A text as its file has it; `comment` is the character that its comments begin with."""
    return f"{comment} a text of tpucc, version {TEXT_VERSION}\n{text}"


def require_version(source: Source) -> None:
    """Raises `ProgramError` E0702 for a text of another version."""
    found = _STAMP.match(source.text)
    if found is not None and int(found[1]) != TEXT_VERSION:
        message = f"the text has version {int(found[1])} of the text forms; this tpucc reads version {TEXT_VERSION}"
        mend = "compile the model again with this tpucc, or read the text with the one that wrote it"
        raise ProgramError(Diagnostic("E0702", message, help=(mend,)), source)


def encode(data: bytes | memoryview) -> str:
    """Base64 in lines of 1,024 characters, each with its end; nothing for no bytes."""
    text = binascii.b2a_base64(data, newline=False).decode("ascii")
    width = _LINE_BYTES // 3 * 4
    return "".join(f"{text[start : start + width]}\n" for start in range(0, len(text), width))


def decode(text: str) -> bytes:
    """The bytes of base64 text; blanks and line ends don't count.

    Raises `ValueError` for other characters, wrong padding, and bits after the last byte that aren't zero: one text, one value.
    """
    packed = text.translate(_BLANKS).encode("ascii")
    data = binascii.a2b_base64(packed, strict_mode=True)
    odd = len(data) % 3
    if odd and binascii.b2a_base64(data[-odd:], newline=False) != packed[-4:]:
        raise ValueError("the last characters have bits that belong to no byte")
    return data


def quote(text: str) -> str:
    r"""`text` in quotes, on one line and with nothing unprintable: `"say \"hi\"\n"`."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else '"' + "".join(map(_escaped, text)) + '"'


def unquote(text: str) -> str:
    """The string that `quote` gave. Raises `ValueError` for missing quotes, quotes inside, and unknown escapes."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise ValueError("a string needs a quote before it and one after it")
    return _ESCAPE.sub(_meant, text[1:-1])


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    return character if character.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _meant(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if match[0] == '"':
        raise ValueError("a quote inside a string needs a backslash before it")
    if code is None:
        if match[3] not in _LONG:
            raise ValueError(f"unknown escape \\{match[3]}")
        return _LONG[match[3]]
    if int(code, 16) > 0x10FFFF:
        raise ValueError(f"no character has the code {code}")
    return chr(int(code, 16))


def line_error(code: str, message: str, span: Span, *help: str) -> LineError:
    return LineError(Diagnostic(code, message, (Label(span),), help))


class Errors:
    """The errors of one text. All are kept up to `MOST_ERRORS`, so that one run shows them together."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    @property
    def are_enough(self) -> bool:
        return len(self.found) >= MOST_ERRORS

    def add(self, code: str, message: str, span: Span, *help: str) -> None:
        self.found.append(Diagnostic(code, message, (Label(span),), help))

    def attempt(self, read: Callable[_P, object], *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Calls `read`, and keeps its `LineError`. False if it raised one; True if not, or if there are enough errors already."""
        if not self.are_enough:
            try:
                read(*args, **kwargs)
            except LineError as error:
                self.found.append(error.diagnostic)
                return False
        return True

    def require_none(self, source: Source) -> None:
        """Raises `ProgramError` with the errors in the order of the text. Only the first of them says that the model must be named."""
        if self.found:
            ordered = sorted(self.found, key=lambda error: (error.span is None, error.span))
            unnamed = next((error for error in ordered if error.code == WITHOUT_DATA), None)
            raise ProgramError([error for error in ordered if error is unnamed or error.code != WITHOUT_DATA][:MOST_ERRORS], source)

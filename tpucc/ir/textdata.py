"""Bytes and strings as they stand in the text forms: graphs, tile programs and listings share these four functions.

Bytes are base64 (RFC 4648) in lines of 1,024 characters. Strings are quoted; whatever a terminal or an editor could act on is escaped:
control, bidirectional and unpaired surrogate characters, line ends, the quote and the backslash.
"""

from __future__ import annotations

import binascii
import re

_LINE_BYTES = 768
_BLANKS = str.maketrans("", "", " \t\r\n")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LONG = {text[1]: character for character, text in _SHORT.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.?))|\"", re.DOTALL)


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

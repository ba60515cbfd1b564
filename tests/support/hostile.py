"""A source whose names try to get out of the text that they are, and its harmless twin."""

from __future__ import annotations

from collections.abc import Sequence

ATTACK = "window.__pwned=1"
FILE_NAME = f"\"><img src=x onerror={ATTACK}>&lt;\u202e'\n.tpu"
COMMENT = f"</script><script>{ATTACK}</script> <!-- \u202e\u2066 ]]> `${{{ATTACK}}}` \\"
KEYS = (
    f"</script><script>{ATTACK}</script>",
    f"</style></title></textarea><script>{ATTACK}</script>",
    f"<img src=x onerror={ATTACK}>",
    f'"><svg onload={ATTACK}>',
    f"' onmouseover='{ATTACK}' autofocus onfocus='{ATTACK}' x='",
    f"`+({ATTACK})+`${{{ATTACK}}}",
    f'\\"; {ATTACK}; //',
    f"javascript:{ATTACK}",
    "&lt;b&gt;&amp;&#0;",
    "<!--<script>",
    "]]>",
    "a\nb\tc\rd",
    "\u202eright to left\u2066",
    "\x01\x1b[31m\x7f",
    "\u2028\u2029 \U0001f600",
    "__proto__",
    "constructor",
    "toString.w",
    "hasOwnProperty",
)
"""Keys of weights, which the language lets be any text."""

PLAIN_KEYS = tuple(f"w{index}" for index in range(len(KEYS)))


def literal(text: str) -> str:
    """`text` as a string of the language. A carriage return would end its line, so it is left out."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "", "{": "{{", "}": "}}"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


def chain(keys: Sequence[str], comment: str = "") -> str:
    """A model of one small layer for each key."""
    head = [f"# {comment}", "weights random(seed=0)", "def dense(x, key):"]
    head += ['    weight w: f32[x.shape[-1], 4] = "{key}"', "    return relu(x @ w)", "model m(x: f32[2, 4] in [-1.0, 1.0]):", "    h = x"]
    return "\n".join([*head, *(f"    h = dense(h, {literal(key)})" for key in keys), "    return h", ""])

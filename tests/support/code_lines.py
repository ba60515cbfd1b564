"""How long a file is for a reader."""

from __future__ import annotations

import ast
import io
import tokenize

NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def code_lines(text: str) -> int:
    """The lines of a Python file that are neither blank nor comment nor docstring."""
    statements = (each for node in ast.walk(ast.parse(text)) if isinstance(each := next(iter(_body(node)), None), ast.Expr))
    docstrings = [each for each in statements if isinstance(each.value, ast.Constant) and isinstance(each.value.value, str)]
    strings = {line for each in docstrings for line in range(each.lineno, (each.end_lineno or each.lineno) + 1)}
    tokens = (token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in NO_CODE)
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - strings)


def _body(node: ast.AST) -> list[ast.stmt]:
    return node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []

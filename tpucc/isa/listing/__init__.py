"""The text form of instructions and programs: words of a line, operands, directives."""

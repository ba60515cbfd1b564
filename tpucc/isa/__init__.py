"""The machine's programs: instructions, encoding, assembler, container, verifier."""

"""Compiling goes on from the text of a stage, as it was printed or as a person edited it."""

"""Sweeps as a page and as text."""

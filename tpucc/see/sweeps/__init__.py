"""The page of a sweep."""

SCRIPTS = ("dom", "theme", "page")
"""The files of the page's script, in their order."""

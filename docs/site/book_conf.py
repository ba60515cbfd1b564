"""Sphinx's settings for the compiler as a book. `docs/site/book.py` lays it out and runs Sphinx on it."""

import tpucc

project = "The compiler of tpucc"
author = "the tpucc authors"
copyright = "the tpucc authors, Apache-2.0"
release = version = tpucc.__version__

extensions = ["myst_nb"]
nb_execution_mode = "off"
suppress_warnings = ["myst.header"]
root_doc = "index"
pygments_style = "friendly"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["book.css"]

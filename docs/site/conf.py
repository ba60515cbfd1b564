"""Sphinx's settings for the book. `docs/site/build.py` lays the pages out and runs Sphinx on them."""

import tpucc

project = "tpucc"
author = "the tpucc authors"
copyright = "the tpucc authors, Apache-2.0; texts CC BY 4.0"
release = version = tpucc.__version__

extensions = ["myst_nb"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "off"  # the notebook is executed by docs/generate.py, and checked against the code
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
root_doc = "index"
exclude_patterns = ["site", "instructors/solutions", "instructors/exams.md", "**/__pycache__", "**.py"]
pygments_style = "friendly"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"tpucc {release}"
html_static_path = ["_static"]
html_favicon = "_static/icon.svg"
html_css_files = ["tpucc.css"]
html_copy_source = False
html_show_sourcelink = False
html_extra_path = ["live"]
html_theme_options = {"top_of_page_buttons": []}

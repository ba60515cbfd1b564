"""Pictures of every stage.

`diagrams` are graphs, laid out by Graphviz; `charts` write SVG at once; `waves` show an array of elements cycle by cycle; `page` is the
report, which links them all. They share colours (`palette`, and `theme` for pages), markup (`svg`), the widths of texts (`text`),
headings, rectangles.
"""

"""All that is drawn of a program: pictures of every stage, and pages.

`diagrams` are boxes and arrows, `charts` have axes, `waves` show an array of elements cycle by cycle. `kit` is what all pages are put
together from; `page` is the report, and `comparison` and `sweeps` have a page each. They share colours (`palette`), markup
(`svg`), the widths of texts (`text`), headings, legends, rectangles. What is computed or said is in `tpucc.explain`.
"""

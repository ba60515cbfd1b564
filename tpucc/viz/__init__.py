"""Pictures of every stage.

Graphs: `operators`, `layergraph` and `dataflow` make a `Diagram` of a stage, `collapse` makes a large one small, `insides` what opens in
that (each a `part`), `dot` writes it as DOT, `render` has it laid out (by Graphviz in a child process, or by `layout`), `wrap` cuts long
ones into lines, `paint` makes the SVG. Charts:
`tiles`, `memory`, `timeline`, `roofline` and `breakdown` write SVG at once. `report` puts all of them on one page. Colours are `palette`'s.
"""

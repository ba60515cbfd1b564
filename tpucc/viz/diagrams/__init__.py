"""Graphs as pictures.

`operators`, `layergraph` and `dataflow` make a `Diagram` of a stage, `collapse` makes a large one small and `insides` are what its boxes
hold, `dot` writes it as DOT, `render` has it laid out (by Graphviz in a child process, or by `layout`), `wrap` cuts long ones into lines,
`paint` makes the SVG.
"""

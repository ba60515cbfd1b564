"""Graphs as pictures.

`operators`, `layergraph` and `dataflow` make a `Diagram` of a stage, `collapse` makes a large one small and `insides` are what its boxes
hold, `layout` finds a place for each box, `wrap` cuts long ones into lines, `paint` makes the SVG, and `render` does these one after the
other, or writes a diagram as DOT. `rewrites` are the parts of a graph that a pass changed.
"""

"""The layers that the device knows: a closed set, with their integer reference semantics.

A layer graph is a `Graph` whose device nodes have the operators of this package and whose host nodes have those of `ops`. An edge
between device nodes is in one of the device's formats, with its quantisation.
"""

"""From a graph to an ONNX file: `rewriting.py` makes of it what ONNX can say, `graph.py` the nodes and their layout, `layers.py` has the
forms of the device's layers, `file.py` the file's contents as values and as bytes."""

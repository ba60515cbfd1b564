"""From a graph to an ONNX file: `rewriting.py` makes of it what ONNX can say, `graph.py` the nodes and their layout, `layers.py` has the
forms of the device's layers. `model.py` is the file's contents as values, `file.py` the
bytes."""

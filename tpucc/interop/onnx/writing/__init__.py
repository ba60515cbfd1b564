"""From a graph to an ONNX file: `model.py` the file's contents as values, `graph.py` the nodes and their layout, `layers.py` the forms of
the device's layers, `file.py` the bytes."""

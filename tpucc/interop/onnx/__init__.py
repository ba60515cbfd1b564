"""ONNX files: `writing` makes one of a graph."""

"""ONNX files: models in and out."""

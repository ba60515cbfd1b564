"""Files of other tools: ONNX and PyTorch in and out, and from a graph back to source text."""

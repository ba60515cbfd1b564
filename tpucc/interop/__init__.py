"""Files of other tools: weight archives, ONNX."""

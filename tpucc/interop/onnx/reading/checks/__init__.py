"""What ONNX demands of the operands of a node, once they are known."""

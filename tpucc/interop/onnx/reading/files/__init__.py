"""From the bytes of a file to its value, checked against ONNX's operators: names, types and signatures."""

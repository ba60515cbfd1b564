"""ONNX files: models in and out."""

PRODUCER = "tpucc"
"""The program that files name as the one that wrote them."""
OPSET, IR_VERSION = 21, 10
"""The versions of ONNX's operators and of its format that files are written in."""

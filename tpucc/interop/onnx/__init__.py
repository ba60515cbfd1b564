"""ONNX files: models in and out."""

PRODUCER = "tpucc"
"""The program that files name as the one that wrote them."""

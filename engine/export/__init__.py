"""Policies as ONNX graphs, and graphs as policies. The only package that knows ONNX."""

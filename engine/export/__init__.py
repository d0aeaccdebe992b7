"""Policies exported as ONNX graphs, and ONNX graphs run as policies. The only package that knows ONNX."""

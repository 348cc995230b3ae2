"""Networks as ONNX graphs: written by hand, node by node, and held against torch on real histories."""

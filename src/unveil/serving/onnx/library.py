"""ONNX and its runtime, or what to do where they are not installed. Everything else here takes them from this file."""

from unveil.errors import UnveilError

try:
    import onnx as onnx
    import onnxruntime as onnxruntime
except ModuleNotFoundError as error:
    raise UnveilError("ONNX models need onnx and onnxruntime", hint="Run: pip install 'unveil[export]'.") from error

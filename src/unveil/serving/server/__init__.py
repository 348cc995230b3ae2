"""The server: trained models behind HTTP, with a page to try them on."""

from unveil.errors import UnveilError

try:
    import fastapi as fastapi
    import prometheus_client as prometheus_client
    import uvicorn as uvicorn
except ModuleNotFoundError as error:
    hint = "Run: pip install 'unveil[serve]'."
    raise UnveilError("serving needs FastAPI, Uvicorn, ONNX Runtime and prometheus-client", hint=hint) from error

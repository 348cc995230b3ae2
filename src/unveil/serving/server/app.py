"""The paths of the server: lists, search, health, metrics, and the page."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client import generate_latest
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import Route

from unveil import __version__
from unveil.errors import UnveilError
from unveil.serving.server import schemas
from unveil.serving.server.inference_service import InferenceService

_ABOUT = "Lists of items for histories or known users. Raw ids in, raw ids out; unknown ids are reported."
#: Files of the page, and their types.
_FILES = {"": ("index.html", "html"), "page.css": ("page.css", "css"), "page.js": ("page.js", "javascript")}
#: The page may ask this server, and nobody else, for anything.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


def create_app(service: InferenceService) -> FastAPI:
    """The FastAPI app of a service; the middleware wraps it."""
    app = FastAPI(
        title="unveil", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None, lifespan=service.open
    )
    app.include_router(_lists(service))
    app.include_router(_maintenance(service))
    for path, (name, kind) in _FILES.items():
        content = files(__package__).joinpath("page", name).read_bytes()
        response = Response(content, media_type=f"text/{kind}; charset=utf-8", headers=_HEADERS)
        app.router.routes.append(Route(f"/{path}", response, methods=["GET"]))
    for problem in (UnveilError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(problem, _error_response)
    return app


def _lists(service: InferenceService) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["lists"], responses=schemas.errors(400, 401, 403, 408, 413, 422, 429))

    @router.post("/recommend", response_model=schemas.RecommendResponse, summary="One list")
    async def recommend(question: schemas.RecommendRequest) -> Response:
        """Recommendations for a history or a known user."""
        (answer,) = await service.answer([question])
        return _json(answer)

    @router.post("/recommend/batch", response_model=schemas.BatchResponse, summary="Many lists")
    async def recommend_batch(batch: schemas.BatchRequest) -> Response:
        """One response for each request, in order."""
        return _json(schemas.BatchResponse(answers=await service.answer(batch.questions, batch=True)))

    @router.get("/items", response_model=list[schemas.ItemMatch], summary="Search items")
    async def items(
        q: str = Query("", max_length=200, description="Words of a title, or an id.", examples=["star wars"]),
        limit: int = Query(20, ge=1, le=100),
        model: str | None = Query(None, max_length=1_000),
    ) -> Sequence[schemas.ItemMatch]:
        """The most popular items whose titles have all the words."""
        return await service.work(lambda: service.store.model(model).search(q, limit))

    @router.get("/models", response_model=list[schemas.ModelInfo], summary="What is served")
    async def models() -> Sequence[schemas.ModelInfo]:
        """All models; the first is the default."""
        return [served.describe(service.limits.k) for served in service.store.models.values()]

    return router


def _maintenance(service: InferenceService) -> APIRouter:
    router = APIRouter(tags=["upkeep"])

    @router.get("/health", summary="Alive?")
    async def health() -> dict[str, str]:
        """200 while the process answers."""
        return {"status": "alive"}

    @router.get("/ready", summary="Ready?", responses={503: {"description": "shutting down"}})
    async def ready() -> Response:
        """200 while the server accepts requests, 503 once it is shutting down."""
        return JSONResponse({"status": "leaving"}, 503) if service.draining else JSONResponse({"status": "ready"})

    @router.get("/metrics", summary="Counters, for Prometheus")
    async def metrics() -> Response:
        """Text in the format of Prometheus."""
        return Response(generate_latest(service.metrics.registry), media_type="text/plain; version=0.0.4")

    @router.post("/reload", summary="Look at the model folders again", responses=schemas.errors(401, 403, 409))
    async def reload() -> Response:
        """Load every folder again. 409 if one is refused: its old version stays."""
        outcomes = await service.reload(force=True)
        refused = [outcome for outcome in outcomes if outcome.refused]
        content: dict[str, Any] = {"models": [vars(outcome) for outcome in outcomes]}
        if refused:
            content["error"] = " ".join(f"{outcome.name}: {outcome.refused}" for outcome in refused)
        return JSONResponse(content, 409 if refused else 200)

    return router


def _json(content: BaseModel) -> Response:
    """Straight from the model to bytes: it is our own, and need not be checked."""
    return Response(content.model_dump_json(), media_type="application/json")


async def _error_response(request: Request, error: Exception) -> Response:
    status, problem, headers = 500, "something went wrong here; it has been logged", None
    if isinstance(error, UnveilError):
        status, problem = 422, str(error)
    elif isinstance(error, RequestValidationError):
        status, problem = _first_problem(error)
    elif isinstance(error, HTTPException):
        status, problem, headers = error.status_code, error.detail, error.headers
        if status == 400:  # FastAPI's own says: there was an error
            problem = "not JSON: not UTF-8, nested too deep, or with a number of thousands of digits"
    return JSONResponse({"error": problem}, status, headers)


def _first_problem(error: RequestValidationError) -> tuple[int, str]:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part != "body")[:100]
    if first["type"] == "json_invalid":
        return 400, f"not JSON, at character {place}: {first.get('ctx', {}).get('error', '')}"
    if not place and first["type"] in ("missing", "model_attributes_type"):
        return 422, "the request is no JSON object: send one, with the header Content-Type: application/json"
    found = first.get("input")
    shown = f", found {found!r}"[:100] if isinstance(found, str | int | float) else ""
    return 422, f"{place + ': ' if place else ''}{first['msg']}{shown}"

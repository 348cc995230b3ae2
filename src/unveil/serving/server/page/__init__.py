"""The page at /: three files, and nothing from elsewhere."""

from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

_FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
#: The page may ask this server, and nobody else, for anything.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


def page_router() -> APIRouter:
    """The files, read once."""
    router = APIRouter(include_in_schema=False)
    for path, (name, kind) in _FILES.items():
        content = files(__package__).joinpath(name).read_bytes()
        router.add_api_route(path, _file(content, kind), methods=["GET"])
    return router


def _file(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def give() -> Response:
        return Response(content, media_type=f"{kind}; charset=utf-8", headers=_HEADERS)

    return give

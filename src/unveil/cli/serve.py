"""`unveil serve RUN [RUN2]`: trained models behind HTTP, with a page to try them on."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unveil.cli.options import TitleIds, Titles, option
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.serving.server.model_store import ItemInfo

_LIMITS = "Limits"


def serve(
    runs: Annotated[list[Path], typer.Argument(help="Folders of trained models; the first answers by default.")],
    host: Annotated[str, option("Where to listen; only this machine can reach the default.")] = "127.0.0.1",
    port: Annotated[int, option("0: any free one.", min=0, max=65535)] = 8000,
    titles: Titles = None,
    title_ids: TitleIds = None,
    items: Annotated[Path | None, option("Item attributes, for `where`: CSV, TSV or Parquet.")] = None,
    token_file: Annotated[Path | None, option("File with the bearer token to require; or set UNVEIL_TOKEN.")] = None,
    allow_host: Annotated[list[str] | None, option("Host name to accept without a token, e.g. of a proxy.")] = None,
    watch: Annotated[float, option("Seconds between checks for new models; 0: only by /reload.", min=0)] = 2.0,
    workers: Annotated[int, option("Scoring threads.", min=1)] = 2,
    drain: Annotated[float, option("Seconds to keep answering new requests after SIGTERM.", min=0)] = 1.0,
    max_body: Annotated[int, option("Bytes per request.", panel=_LIMITS, min=1)] = 1 << 20,
    max_history: Annotated[int, option("Items per history.", panel=_LIMITS, min=1)] = 10_000,
    max_k: Annotated[int, option("Recommended items per list.", panel=_LIMITS, min=1)] = 1_000,
    max_batch: Annotated[int, option("Lists per request.", panel=_LIMITS, min=1)] = 256,
    max_passes: Annotated[int, option("Forward passes per request, for reasons.", panel=_LIMITS, min=1)] = 10_000,
    max_concurrent: Annotated[int, option("Concurrent requests.", panel=_LIMITS, min=1)] = 256,
    max_seconds: Annotated[float, option("Seconds for a request to arrive.", panel=_LIMITS, min=0.01)] = 10.0,
) -> None:
    """Serve trained models over HTTP: recommendations as JSON, a page at /, health, metrics.

    A model that is trained again in its folder is loaded without a restart. On SIGTERM or Ctrl-C the server ends when
    all requests are answered.
    """
    from unveil.serving.server.inference_service import Limits, Settings
    from unveil.serving.server.middleware import is_loopback
    from unveil.serving.server.process import serve as run

    limits = Limits(max_body, max_history, max_k, max_batch, max_passes, max_concurrent, max_seconds)
    token = _token(token_file)
    settings = Settings(host, port, token, workers, watch or None, drain, limits=limits, hosts=allow_host or ())
    if not is_loopback(host) and token is None:
        typer.echo(f"unveil: {host} can be reached by others, and no token is asked for.", err=True)
    run(runs, settings, _item_info(titles, title_ids, items))


def _token(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get("UNVEIL_TOKEN") or None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnveilError(f"cannot be read: {error}", where=path) from None
    if not token:
        raise UnveilError("the file is empty", where=path, expected="a token")
    return token


def _item_info(titles: Path | None, title_ids: Path | None, items: Path | None) -> "ItemInfo":
    from unveil.data.titles import read_ids, read_titles
    from unveil.serving.attributes import Attributes
    from unveil.serving.server.model_store import ItemInfo

    if titles is None and title_ids is not None:
        raise UnveilError("pairs of ids were given, and no titles", hint="Name the file of titles with --titles.")
    named = {} if titles is None else read_titles(titles)
    if title_ids is not None:
        named = {raw: named[other] for raw, other in read_ids(title_ids).items() if other in named}
        if not named:
            raise UnveilError("none of the pairs of ids leads to a title", where=title_ids)
    return ItemInfo(named, None if items is None else Attributes.read(items))

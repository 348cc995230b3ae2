"""`unveil`: the command line. Commands live in their own files and import what is heavy only when they run."""

import signal
import sys
import warnings
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

from unveil import __version__
from unveil.cli import advise, data, evaluate, loop, propensity, recommend, reproduce, train, world
from unveil.cli.options import takes_options
from unveil.errors import UnveilError, UnveilWarning


class _Commands(TyperGroup):
    """Ctrl-C gives one message, unless the command handles it."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(_fail("stopped.", 130)) from None


app = typer.Typer(
    name="unveil",
    cls=_Commands,
    help="Debiased sequential recommendation: learn what users would like, not merely what they were shown.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for group in (data, world, propensity, reproduce):
    inner = typer.Typer(help=group.HELP, no_args_is_help=True)
    for command in group.COMMANDS:
        inner.command(command.__name__)(takes_options(command))
    app.add_typer(inner, name=group.__name__.rpartition(".")[2])
for command in (
    *(advise.audit, advise.advise, train.train, train.tune, evaluate.evaluate, evaluate.compare, evaluate.report),
    *(evaluate.calibrate, recommend.recommend, recommend.export, recommend.serve),
    *(loop.demo, loop.theory, loop.loop),
):
    app.command(command.__name__)(takes_options(command))


def _version(given: bool) -> None:
    if given:
        typer.echo(f"unveil {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def run() -> None:
    """Entry point: a user error is one message on standard error and exit code 2, never a traceback."""
    # as after Ctrl-C: temporary files are removed
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(_fail("stopped.", 128 + number)))
    warnings.formatwarning = _formatted
    if isinstance(sys.stdout, TextIOWrapper):  # as standard error does where the terminal's encoding lacks a character
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app()
    except UnveilError as error:
        sys.exit(_fail(str(error)))
    except UnicodeEncodeError as error:  # an argument with bytes that are no text
        sys.exit(_fail(str(UnveilError("not text in UTF-8", found=error.object))))
    except OSError as error:  # other errors of the system
        sys.exit(_fail(f"{error.filename or 'the system says'}: {error.strerror or error}."))
    except (MemoryError, RuntimeError) as error:
        # torch says it in the message only: can't allocate memory; CUDA out of memory, tried to allocate …
        if not isinstance(error, MemoryError) and "allocate" not in str(error):
            raise
        parts = "model.width, model.length, task.batch_size; the width of an estimator or a propensity"
        advice = f"Use a smaller model ({parts}), a smaller log, or a larger machine."
        sys.exit(_fail(f"there is not enough memory. {advice}"))


_in_full = warnings.formatwarning
#: Warnings that were printed. Python's own record of them is cleared whenever a library changes a filter.
_PRINTED: set[str] = set()


def _formatted(message: Warning | str, category: type[Warning], *place: Any, **named: Any) -> str:
    """A warning to users as one message, once; those of libraries with their place in the code."""
    if not issubclass(category, UnveilWarning):
        return _in_full(message, category, *place, **named)
    text = f"unveil: {message}\n"
    new = text not in _PRINTED
    _PRINTED.add(text)
    return text if new else ""


def _fail(message: str, code: int = 2) -> int:
    typer.secho(f"unveil: {message}", err=True, fg=typer.colors.RED if sys.stderr.isatty() else None)
    return code

"""Doing what is left of a grid, and keeping each cell as it comes."""

from collections.abc import Sequence
from typing import Any

from unveil.errors import UnveilError
from unveil.experiment.grid.job import Done, Engine, Failed, Job
from unveil.experiment.grid.progress import Watcher
from unveil.experiment.grid.store import SECONDS, Store

#: Reasons, and cells of each, that are told in one message.
_TOLD = 3


class Interrupted(KeyboardInterrupt):
    """The grid was stopped; what is done is kept."""

    def __init__(self, done: int, total: int, what: str = "cells") -> None:
        self.done, self.total = done, total
        super().__init__(f"stopped; {done} of {total} {what} are done and kept")


def run_grid(
    jobs: Sequence[Job], store: Store, engine: Engine, watch: Watcher, *, what: str = "cells"
) -> dict[str, dict[str, Any]]:
    """The results of all jobs by key, in the order of the jobs. What was done before is not done again."""
    there = {job.key: store.result(job.key) for job in jobs}
    left = [job for job in jobs if there[job.key] is None]
    if left:
        _do(left, len(jobs), store, engine, watch, what)
    results = {job.key: store.result(job.key) for job in jobs}
    return {key: result for key, result in results.items() if result is not None}


def _do(left: Sequence[Job], total: int, store: Store, engine: Engine, watch: Watcher, what: str) -> None:
    failures: list[Failed] = []
    done = total - len(left)
    watch.start(left, total, what)
    events = engine.run(left)
    try:
        for event in events:
            if isinstance(event, Done):
                store.keep(event.key, {**event.result, SECONDS: round(event.seconds, 3)})
                done += 1
            elif isinstance(event, Failed):
                failures.append(event)
            watch.event(event)
    except KeyboardInterrupt:
        raise Interrupted(done, total, what) from None
    finally:
        _close(events)
        watch.stop()
    if failures:
        raise _failure(failures, f"{total} {what}", store)


def _close(events: object) -> None:
    """Stop the workers now, not when the iterator happens to be collected."""
    close = getattr(events, "close", None)
    if close is not None:
        close()


def _failure(failures: Sequence[Failed], total: str, store: Store) -> UnveilError:
    """One message for all that failed; those that failed for the same reason are told together."""
    reasons: dict[str, list[str]] = {}
    for each in failures:
        reasons.setdefault(each.why.rstrip("."), []).append(each.key)
    seen = [store.blame(each.key, each.detail) for each in failures if each.detail]
    told = [f"{', '.join(keys[:_TOLD])}{' …' if len(keys) > _TOLD else ''}: {why}" for why, keys in reasons.items()]
    return UnveilError(
        f"{len(failures)} of {total} failed: {'; '.join(told[:_TOLD])}{'; …' if len(told) > _TOLD else ''}",
        where=store.folder,
        hint=f"{f'See {seen[0].parent}. ' if seen else ''}What is done is kept: the same command tries these again.",
    )

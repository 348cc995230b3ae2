"""Doing one job and catching what goes wrong: the same in this process and in any other."""

import time
import traceback

from unveil.errors import UnveilError
from unveil.experiment.grid.job import Done, Failed, Job, Tell


def attempt(job: Job, tell: Tell) -> Done | Failed:
    """The job's result, or why there is none."""
    start = time.perf_counter()
    try:
        return Done(job.key, job.run(tell), time.perf_counter() - start)
    except UnveilError as error:
        return Failed(job.key, str(error))
    except MemoryError:
        return Failed(job.key, "there is not enough memory.")
    except Exception as error:
        return Failed(job.key, f"{type(error).__name__}: {error}.", traceback.format_exc())

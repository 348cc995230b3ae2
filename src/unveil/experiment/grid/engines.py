"""Engines by name."""

from unveil.errors import UnveilError, unknown
from unveil.experiment.grid.job import Engine
from unveil.experiment.grid.processes import Processes, cores

ENGINES = ("processes", "ray")


def engine(name: str, jobs: int | None = None, address: str | None = None) -> Engine:
    """Worker processes of this machine, by default one a core; or a Ray cluster, if there is one at the address."""
    if name == "ray":
        from unveil.experiment.grid.on_ray import OnRay
        from unveil.experiment.grid.ray_library import refuse_silent

        refuse_silent(address)
        return OnRay(address, jobs)
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    if address is not None:
        hint = "Add --engine ray, or leave --address out."
        raise UnveilError("an address is for the engine 'ray'", where="--address", found=address, hint=hint)
    return Processes(jobs or cores())

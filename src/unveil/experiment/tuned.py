"""What the authors' public code is tuned to on real data, for each estimator apart.

The exponents are in the code only: the paper weights by 1/θ̂, the code by θ̂^−exponent. At 0.01 all weights are all but
equal, so that IPS there is the naive loss by another name.
"""

from collections.abc import Mapping
from typing import Any

from unveil.errors import unknown

Settings = Mapping[str, Any]


def _tuned(
    width: int, blocks: int, heads: int, batch: int, dropout: float, rho: float, exponent: float | None = None
) -> Settings:
    network = {
        "model.width": width,
        "model.blocks": blocks,
        "model.heads": heads,
        "task.batch_size": batch,
        "model.dropout": dropout,
        "task.mask_probability": rho,
    }
    return network if exponent is None else {**network, "estimator.exponent": exponent}


#: data set → estimator → settings by dotted name.
TUNED: Mapping[str, Mapping[str, Settings]] = {
    "ml-1m": {
        "naive": _tuned(64, 1, 1, 32, 0.2, 0.15),
        "ips": _tuned(64, 2, 1, 16, 0.0, 0.1, 0.5),
        "itps": _tuned(64, 1, 1, 8, 0.1, 0.4, 0.2),
    },
    "ml-20m": {
        "naive": _tuned(256, 3, 4, 256, 0.0, 0.6),
        "ips": _tuned(256, 2, 4, 256, 0.1, 0.5, 0.01),
        "itps": _tuned(256, 3, 8, 128, 0.01, 0.4, 0.2),
    },
    "beauty": {
        "naive": _tuned(16, 1, 1, 16, 0.0, 0.4),
        "ips": _tuned(64, 2, 1, 32, 0.1, 0.2, 0.01),
        "itps": _tuned(64, 2, 1, 32, 0.1, 0.6, 0.2),
    },
}
#: Tokens that the authors' models are shown.
LENGTH = {"ml-1m": 100, "ml-20m": 100, "beauty": 10}


def tuned(data: str, estimator: str, preset: str) -> dict[str, Any]:
    """Settings of an estimator on a data set; beyond the preset `paper` only the options of the estimator itself."""
    if data not in TUNED:
        raise unknown("data set with the authors' settings", data, TUNED)
    found = TUNED[data].get(estimator, {})
    if preset == "paper":
        return {"model.length": LENGTH[data], **found}
    return {name: value for name, value in found.items() if name.startswith("estimator.")}

"""What a log says about its own exposure, without training anything.

>>> from unveil.audit import audit  # doctest: +SKIP
>>> print(audit(log).verdict)  # doctest: +SKIP
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.audit.advice import Audit as Audit
    from unveil.audit.advice import audit as audit


def __getattr__(name: str) -> object:
    """Import on first use: those who want one figure need not load them all."""
    if name not in ("Audit", "audit"):
        raise AttributeError(f"module 'unveil.audit' has no attribute {name!r}")
    from unveil.audit import advice

    return getattr(advice, name)

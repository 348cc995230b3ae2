"""What a log says about its own exposure, without training anything.

>>> from unveil.audit import audit  # doctest: +SKIP
>>> print(audit(log).verdict)  # doctest: +SKIP
"""

from unveil.audit.advice import Audit, audit

__all__ = ["Audit", "audit"]

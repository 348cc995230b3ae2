"""Names of results that the studies here share; see `unveil.studies.results`."""

from unveil.studies.results import BASE as BASE
from unveil.studies.results import BOUND as BOUND
from unveil.studies.results import STANDARD as STANDARD
from unveil.studies.results import TRUE as TRUE
from unveil.studies.results import Estimate as Estimate

"""Search of settings: `search.tune` works on a study, alone or with others."""

from unveil.errors import UnveilError

try:
    import optuna
except ModuleNotFoundError as error:
    raise UnveilError("tuning needs Optuna", hint="Run: pip install 'unveil[tune]'.") from error

optuna.logging.set_verbosity(optuna.logging.WARNING)

"""Optuna, or what to do where it is not installed. Everything else here takes it from this file."""

from unveil.errors import UnveilError

try:
    import optuna as optuna
    from optuna.storages import journal as journal
except ModuleNotFoundError as error:
    raise UnveilError("tuning needs Optuna", hint="Run: pip install 'unveil[tune]'.") from error

optuna.logging.set_verbosity(optuna.logging.WARNING)

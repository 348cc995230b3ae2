"""How a user chooses: choice models, one kind a file, found by name."""

from unveil.simulation.choice.base import CHOICES, NOTHING, ChoiceModel, choice_model, told

__all__ = ["CHOICES", "NOTHING", "ChoiceModel", "choice_model", "told"]

"""How users respond to a list: response models, one a file, found by name."""

from unveil.simulation.feedback.responses.base import RESPONSES, Offer, Response, response_model, taken

__all__ = ["RESPONSES", "Offer", "Response", "response_model", "taken"]

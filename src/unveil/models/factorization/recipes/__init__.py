"""How factors are learnt: one recipe a file, found by name."""

from unveil.models.factorization.recipes.base import RECIPES, Learnt, Recipe

__all__ = ["RECIPES", "Learnt", "Recipe"]

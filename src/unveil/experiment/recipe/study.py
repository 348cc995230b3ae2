"""The study of the recipe: semi-synthetic cells, judged against negatives drawn by popularity as well."""

from dataclasses import dataclass
from typing import ClassVar

from unveil.experiment.reproduce.study import Study


@dataclass(frozen=True)
class RecipeStudy(Study):
    """As on real data, where nobody knows the truth, the log's own targets are ranked against popular items too."""

    popular: ClassVar[bool] = True

"""The questions that can be asked, by name."""

from collections.abc import Mapping

from unveil.experiment.beyond.question import Beyond
from unveil.experiment.recipe.question import RecipeQuestion
from unveil.experiment.reproduce.question import Question
from unveil.experiment.reproduce.rq1 import RQ1
from unveil.experiment.reproduce.rq2 import RQ2
from unveil.experiment.reproduce.rq3 import RQ3

QUESTIONS: Mapping[str, Question] = {
    question.name: question for question in (RQ1(), RQ2(), RQ3(), Beyond(), RecipeQuestion())
}

"""How long a training takes, before it begins: rough, and measured on one core."""

from unveil.training.recipe import Recipe


def seconds_of(recipe: Recipe, size: tuple[int, int, int]) -> float:
    """Of users, items and events: the network over the tokens of every epoch, and the softmax over all items."""
    users, items, events = size
    network, task = recipe.model, recipe.task
    tokens = min(events, users * network.length)
    blocks, width = getattr(network, "blocks", 1), network.width
    inside = 6 * blocks * tokens * width * (12 * width + 2 * min(network.length, events / users))
    softmax = 6 * task.mask_probability * tokens * items * width
    return recipe.training.epochs * ((inside + softmax) / 4e10 + 0.004 * blocks * users / task.batch_size)

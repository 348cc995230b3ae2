"""How a signal becomes a loss: each form of it with its slope, some slots at a time."""

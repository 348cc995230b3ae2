"""θ: how likely was a slot to be seen."""

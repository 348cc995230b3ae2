"""Tensor factorisation: a number for every (user, item, step), learnt from those that were observed. Not a network."""

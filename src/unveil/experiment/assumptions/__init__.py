"""A study of assumptions: each is broken on purpose, one at a time, to see which estimator survives."""

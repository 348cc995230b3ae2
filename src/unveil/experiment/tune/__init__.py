"""Tuning: a space of settings, trials with replicates that any number of processes share, and what came of them."""

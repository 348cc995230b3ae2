"""The feedback loop as an experiment: several models, several replicates, one page."""

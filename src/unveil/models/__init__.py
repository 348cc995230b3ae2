"""Models that score items: one network a file, baselines, tensor factorisation."""

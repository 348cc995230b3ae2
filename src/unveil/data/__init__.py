"""What happened: logs, vocabularies, sequences, splits. Knows nothing of models."""

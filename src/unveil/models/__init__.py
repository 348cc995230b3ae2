"""How scores are made: one network a file, whole."""

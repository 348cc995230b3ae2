"""Studies: one engine, and one file for each question that is answered with it."""

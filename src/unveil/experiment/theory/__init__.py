"""The theory, executable: what the losses are on average, and what minimises them, in worlds whose truth is known."""

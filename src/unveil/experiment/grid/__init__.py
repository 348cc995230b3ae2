"""A grid of cells: pieces of work that can be done in any order, anywhere, and are kept as they come."""

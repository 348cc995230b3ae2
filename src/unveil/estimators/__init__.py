"""The heart: slots in; targets, weights and offsets out. One estimator a file."""

"""The one place that sees model and estimator together."""

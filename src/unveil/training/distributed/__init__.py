"""Several processes that train one model: the same loss, gradients and results as one, sooner."""

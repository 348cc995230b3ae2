"""Beyond the paper: how much of the gap from naive to ideal each estimator closes, with true and estimated exposure."""

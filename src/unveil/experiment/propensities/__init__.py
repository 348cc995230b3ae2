"""What `unveil propensity score` shows: estimated propensities against the truth of a world."""

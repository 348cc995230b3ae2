"""What `unveil propensity fit` shows: how good a learnt exposure is, beside popularity."""

"""What `unveil propensity positions` shows: how often each position of a list is looked at."""

"""From a log to a world: what is observed, what is learnt, and how well."""

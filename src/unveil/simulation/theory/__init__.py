"""The theory in worlds whose logs can all be listed: expected losses, the propositions as claims, and minimisers."""

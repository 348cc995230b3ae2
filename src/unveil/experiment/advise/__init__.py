"""Advice: estimators tried in worlds fitted to a user's own log, and what that says about which to use."""

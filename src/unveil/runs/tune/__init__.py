"""Tuning: which settings do best on the validation cases."""

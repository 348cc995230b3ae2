"""Exposure from choices: what was liked better than what was taken, and was not taken, was not seen."""

"""Configs, run folders and reports: the only layer that lays them out."""

"""Runs: the layer that reads settings, lays out folders and does the work of one or many trainings."""

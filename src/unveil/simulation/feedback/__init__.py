"""The feedback laboratory: models trained on what users chose from their recommendations."""

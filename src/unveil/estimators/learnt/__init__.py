"""What some estimators learn from the training part before a network does."""

"""What can be tuned: a training, or one of the factorisations behind a world."""

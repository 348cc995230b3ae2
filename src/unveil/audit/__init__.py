"""What a log says about its own exposure, without training anything."""

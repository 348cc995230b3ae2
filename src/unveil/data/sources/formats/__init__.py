"""One file a format; each registers itself."""

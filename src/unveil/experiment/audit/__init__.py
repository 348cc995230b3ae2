"""What `unveil audit` shows: one page for people, one JSON file for programs."""

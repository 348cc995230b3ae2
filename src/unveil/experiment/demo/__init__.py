"""The demo: a world, its log, four losses, and the page that shows them beside the truth."""

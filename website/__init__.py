"""What `make docs` adds to the pages in docs: options from the commands, the reference from docstrings, equations."""

"""Reports: prose from templates, the blocks of a page, plots."""

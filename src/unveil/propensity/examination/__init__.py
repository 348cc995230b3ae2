"""How often each position of a list is looked at, told from clicks on items that were shown at several positions."""

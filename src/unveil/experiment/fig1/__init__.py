"""Figure 1 of the paper: when in their histories users take an item, and whether that could be chance."""

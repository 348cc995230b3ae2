"""How good are the lists: metrics, candidates, intervals, tests."""

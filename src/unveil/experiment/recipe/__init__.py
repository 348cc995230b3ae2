"""The paper's recipe for real data, put to the test where the truth is known."""

"""The paper's research questions: run again, counted honestly, and set beside what was published."""

"""`unveil report`: finished runs side by side, as one page."""

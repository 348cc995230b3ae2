"""Exposure learnt from impressions: what was shown to whom and when, taken or not."""

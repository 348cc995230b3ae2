"""RQ4: the paper's estimators on real logs, under three rankings, beside a control that only avoids what is popular."""

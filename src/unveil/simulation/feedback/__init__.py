"""The feedback laboratory: models that are trained on what users took of what models recommended."""

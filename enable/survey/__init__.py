"""`enable survey`: record, replay, judge and train many models, with one result row per model."""

"""From cases to verdicts: compile, run in children, compare here, keep what was found."""

"""Turn cases into verdicts: compile and run them in children, compare the results here, and store the verdicts."""

"""The model zoo: one file a model, found by location. Imports nothing of ours."""

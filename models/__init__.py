"""The model zoo: one file for each model, found by location. Imports nothing from other packages of this repository."""

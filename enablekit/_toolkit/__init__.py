"""Holds the packages of the repository in a wheel; in a checkout, where they lie at the top level, it is empty."""

"""A case that crashed or hung, once more under witness."""

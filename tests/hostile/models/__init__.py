"""A package of the user's own."""

MINE = True

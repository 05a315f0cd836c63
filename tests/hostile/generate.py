"""A module of the user's own."""

raise RuntimeError("enablekit imported the user's own generate")

"""The parent's side of a child: what it may do, what travels to it and back, how it ends."""

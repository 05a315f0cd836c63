"""`enable trace`: show, compare, export and import the traces in a workspace."""

"""`enable trace`: traces of a workspace shown, compared and exchanged."""

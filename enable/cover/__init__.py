"""What a library covers of a trace, of OpInfo or of one operator, and what is missing."""

"""`enable report`: what a workspace knows, as one page that opens offline."""

"""Build the report of `enable report`: the workspace's results as one page that opens offline."""

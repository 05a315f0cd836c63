"""The command line, coverage, registration and reports: everything that ties the packages together."""

"""The built-in suites."""

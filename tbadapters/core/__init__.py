"""The framework-neutral core."""

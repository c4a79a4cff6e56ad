"""Isolated backends."""

"""Shipped fakes: a scripted model server, policies, suite checks."""

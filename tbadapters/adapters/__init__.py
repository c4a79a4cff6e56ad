"""One module an agent framework."""

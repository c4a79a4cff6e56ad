"""The tool server of a bicycle workshop."""

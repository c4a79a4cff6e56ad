"""Tables, pages and files made of a run."""

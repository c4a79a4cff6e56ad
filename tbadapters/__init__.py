"""Scores whole agents by the backend records they leave behind, over concurrent repeated trials."""

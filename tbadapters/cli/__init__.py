"""The command line: ``app.py`` says how it ends, each other module holds a group of commands."""

from tbadapters.cli import gate, importing, results, run, suites, thinkingbox  # noqa: F401  (each adds its commands to the app)
from tbadapters.cli.app import app, main

__all__ = ["app", "main"]

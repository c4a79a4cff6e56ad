"""``python -m tbadapters``."""

from tbadapters.cli import main

main()

"""Let the tests of the command line read the runs that the tests of figures are made of."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "core"))

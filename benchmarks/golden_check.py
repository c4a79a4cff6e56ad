"""How long it takes to grade the golden calls of all 507 tasks by their own test functions.

    python benchmarks/golden_check.py --data PATH

The goal is 30 seconds on two processors. ``tbadapters check thinkingbox`` grades each task four times, and compares.
"""

import argparse
import asyncio

from tbadapters import load_suite
from tbadapters.suites.thinkingbox.check import GOLDEN, check_thinkingbox


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a checkout of thinkingbox-data")
    options = parser.parse_args()
    check = asyncio.run(check_thinkingbox(load_suite("thinkingbox", data=options.data), golden_only=True))
    passed = sum(one.passed for one in check.graded if one.variant == GOLDEN)
    print(f"golden calls {passed}/{len(check.graded)} in {check.seconds:.1f} s")


if __name__ == "__main__":
    main()

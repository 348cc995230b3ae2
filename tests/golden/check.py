"""`python -m tests.golden.check [NAME…]`: run cases again and list what differs from the recordings."""

import sys
import time
from fnmatch import filter as matching

from tests.golden.aliases import Aliases
from tests.golden.commands import CASES
from tests.golden.recording import Check, Recording, differences

MOST = 20


def main(names: list[str]) -> None:
    """Names may be patterns, as `train-*`."""
    cases = [case for name in names or ["*"] for case in matching(CASES, name)] or sys.exit(f"None of {list(CASES)}")
    begun, bad = time.monotonic(), 0
    for case in cases:
        old = Recording.read(case)
        check = Check.of(case, old)
        try:
            found = list(differences(case, old, Recording.of(CASES[case]), check, Aliases.read()))
        except RuntimeError as error:
            found = str(error).splitlines()[-MOST:]
        print(f"{case}: {f'{len(found)} DIFFERENCES' if found else 'same'}{f' ({check.note})' if check.note else ''}")
        print("".join(f"  {line}\n" for line in found[:MOST]), end="", flush=True)
        bad += bool(found)
    print(f"{bad} of {len(cases)} cases differ; {time.monotonic() - begun:.0f} s")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main(sys.argv[1:])

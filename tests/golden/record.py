"""`python -m tests.golden.record NAME…`: record cases anew, `all` for every one. Only where numbers may change."""

import sys

from tests.golden.commands import CASES
from tests.golden.recording import Recording


def main(names: list[str]) -> None:
    if not names:
        sys.exit(f"Name what to record, or all: {', '.join(CASES)}")
    for name in CASES if names == ["all"] else names:
        case = CASES[name]
        Recording.of(case.unbroken() if case.stopped else case).write(name)
        print(f"{name}: recorded", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

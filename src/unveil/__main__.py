"""`unveil`, `python -m unveil`, and so `torchrun … -m unveil`. Ctrl-C is answered from here on, while modules load."""

import sys


def run() -> None:
    """Load the commands, then run the one that was named."""
    try:
        from unveil.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        print("unveil: stopped.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    run()

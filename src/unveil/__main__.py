"""`python -m unveil`, and so `torchrun … -m unveil`."""

from unveil.cli.main import run

if __name__ == "__main__":
    run()

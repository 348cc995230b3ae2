import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.run_folders import finished as finished
from unveil.cli.main import run


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    def failure(self) -> str:
        """The one message of a command that failed as it should."""
        assert self.code == 2, self.out + self.err
        assert self.err.startswith("unveil: "), self.err
        assert len(self.err.splitlines()) == 1, self.err
        return self.err.strip()


Command = Callable[..., Done]


@pytest.fixture
def unveil(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The entry point of the command, called in this process."""

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["unveil", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            run()
        return Done(int(ended.value.code or 0), *capsys.readouterr())

    return call

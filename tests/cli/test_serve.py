import socket
from pathlib import Path

from tests.cli.conftest import Command
from tests.runs import Finished


def test_what_is_wrong_is_found_before_anything_is_served(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    assert "not the folder of a trained model" in unveil("serve", tmp_path).failure()
    assert "cannot be read" in unveil("serve", finished.folder, "--titles", tmp_path / "gone").failure()
    assert "cannot be read" in unveil("serve", finished.folder, "--items", tmp_path / "gone.csv").failure()
    assert "cannot be read" in unveil("serve", finished.folder, "--token-file", tmp_path / "gone").failure()
    (tmp_path / "token").write_text("\n")
    assert "the file is empty" in unveil("serve", finished.folder, "--token-file", tmp_path / "token").failure()


def test_a_place_that_is_taken(unveil: Command, finished: Finished) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        message = unveil("serve", finished.folder, "--port", port).failure()
    assert f"127.0.0.1:{port}: cannot listen: Address already in use" in message

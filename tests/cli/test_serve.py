import socket
from pathlib import Path

from tests.cli.conftest import Command
from tests.run_folders import Finished


def test_what_is_wrong_is_found_before_anything_is_served(unveil: Command, finished: Finished, tmp_path: Path) -> None:
    assert "not the folder of a trained model" in unveil("serve", tmp_path).failure()
    assert "cannot be read" in unveil("serve", finished.folder, "--titles", tmp_path / "gone").failure()
    assert "cannot be read" in unveil("serve", finished.folder, "--items", tmp_path / "gone.csv").failure()
    assert "cannot be read" in unveil("serve", finished.folder, "--token-file", tmp_path / "gone").failure()
    (tmp_path / "titles.csv").write_text("id,title\nx1,Heat\nx2,Ran\n")
    message = unveil("serve", finished.folder, "--titles", tmp_path / "titles.csv").failure()
    assert (
        "none of the models' items has a title: found 'items such as 000, 001, 002', expected ids such as x1" in message
    )
    (tmp_path / "pairs.txt").write_text("001 y1\n")
    ids = ["--title-ids", tmp_path / "pairs.txt"]
    message = unveil("serve", finished.folder, "--titles", tmp_path / "titles.csv", *ids).failure()
    assert "none of the pairs of ids leads to a title" in message
    assert "pairs of ids were given, and no titles" in unveil("serve", finished.folder, *ids).failure()
    (tmp_path / "token").write_text("\n")
    assert "the file is empty" in unveil("serve", finished.folder, "--token-file", tmp_path / "token").failure()


def test_a_place_that_is_taken(unveil: Command, finished: Finished) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        message = unveil("serve", finished.folder, "--port", port).failure()
    assert f"127.0.0.1:{port}: cannot listen: Address already in use" in message

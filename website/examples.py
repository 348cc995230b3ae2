"""A page for each example: what it says of itself, then the script."""

import ast
from pathlib import Path

_HEAD = """# Examples

Scripts of `examples/`, each run by the tests; a log of the built-in world is used as input.

"""


def example_list(folder: Path) -> str:
    """The page that lists them."""
    lines = [
        f"- [{script.stem}]({script.stem}.md): {_first_sentence(script)}" for script in sorted(folder.glob("*.py"))
    ]
    return _HEAD + "\n".join(lines) + "\n"


def example_page(script: Path) -> str:
    """One script."""
    source = script.read_text(encoding="utf-8")
    module = ast.parse(source)
    about = ast.get_docstring(module) or ""
    code = "\n".join(source.splitlines()[module.body[0].end_lineno if about else 0 :]).strip()
    return f"# {script.stem}\n\n{about}\n\n```sh\npython examples/{script.name}\n```\n\n```python\n{code}\n```\n"


def _first_sentence(script: Path) -> str:
    about = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return about.split("\n\n")[0].replace("\n", " ")

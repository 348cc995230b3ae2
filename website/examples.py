"""A page for each example: what it says of itself, then the script."""

import ast
from pathlib import Path


def example_pages(folder: Path) -> dict[str, str]:
    """One page a script, and one that lists them."""
    scripts = sorted(folder.glob("*.py"))
    listed = "\n".join(f"- [{script.stem}]({script.stem}.md): {_first_sentence(script)}" for script in scripts)
    head = (
        "# Examples\n\nScripts of `examples/`, each run by the tests; a log of the built-in world stands for yours.\n\n"
    )
    return {"examples/README.md": head + listed + "\n"} | {f"examples/{s.stem}.md": _page(s) for s in scripts}


def _page(script: Path) -> str:
    source = script.read_text(encoding="utf-8")
    module = ast.parse(source)
    about = ast.get_docstring(module) or ""
    end = module.body[0].end_lineno if about else 0
    code = "\n".join(source.splitlines()[end:]).strip()
    return f"# {script.stem}\n\n{about}\n\n```\npython examples/{script.name}\n```\n\n```python\n{code}\n```\n"


def _first_sentence(script: Path) -> str:
    about = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    return about.split("\n\n")[0].replace("\n", " ")

"""The Python code of the README and of the book runs."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "src").glob("*.md"))]
WITH_PYTHON = [page for page in PAGES if "```python" in page.read_text()]


def test_there_are_pages():
    assert {page.name for page in WITH_PYTHON} >= {"README.md", "python.md"}


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_page(page, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    program = tmp_path / (page.stem + "_page.py")
    program.write_text("\n".join(blocks))
    code = compile(program.read_text(), str(program), "exec")
    exec(code, {"__name__": "__page__"})

"""The examples of the documentation."""

import doctest
import json
import pathlib
import re
import resource

import foretrain
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DOCS = SOURCE / "reports/docs"
NOTEBOOKS = sorted((SOURCE / "reports/python/examples").glob("*.ipynb"))


def test_the_packages_own_examples():
    assert doctest.testmod(foretrain).failed == 0


def test_the_pages_examples():
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    assert doctest.testfile(str(DOCS / "python.md"), module_relative=False).failed == 0


def code_of(notebook):
    """The cells as Python has them: what begins with % is Jupyter's."""
    cells = [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    return ["".join(line for line in cell["source"] if not line.startswith("%")) for cell in cells]


def processor_seconds():
    of = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in of)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_is_short(notebook, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cells, known, begun = code_of(notebook), {}, processor_seconds()
    for number, cell in enumerate(cells):
        exec(compile(cell, f"{notebook.name}, cell of code {number}", "exec"), known)
    pyplot.close("all")
    assert 2 <= len(cells) <= 10
    # Five seconds on a quiet machine with two processors.
    assert processor_seconds() - begun < 10


def test_each_notebook_is_linked_by_the_page_of_its_name_and_links_it():
    for notebook in NOTEBOOKS:
        page = DOCS / ("python.md" if notebook.stem == "first-steps" else f"{notebook.stem}.md")
        assert f"(../python/examples/{notebook.name})" in page.read_text(encoding="utf-8"), notebook
        if notebook.stem != "first-steps":
            assert f"(../../docs/{page.name})" in notebook.read_text(encoding="utf-8"), notebook


def test_how_tos_have_a_notebook():
    navigation = (SOURCE / "reports/mkdocs.yml").read_text(encoding="utf-8")
    how_tos = re.search(r"- How to:\n((?: {6}- .*\n)+)", navigation)[1]
    pages = set(re.findall(r": ([a-z-]+)\.md", how_tos))
    # This page's is first-steps; a server is asked by others than Python.
    assert pages - {"python", "serve", "why-is-my-run-slow"} <= {notebook.stem for notebook in NOTEBOOKS}


def test_notebooks_hold_no_outputs():
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        assert all(not cell["outputs"] for cell in cells if cell["cell_type"] == "code"), notebook

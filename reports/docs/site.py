"""MkDocs hook: files of the repository outside of these pages that pages link to (pictures, sources, tables) become part of
the site; a link to a file that is not there stops the build."""

import os
import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = pathlib.Path(__file__).resolve().parent
LINK = re.compile(r"(\]\()([^)#\s]+)")
SHOWN_AS_TEXT = {".hpp", ".cpp", ".def", ".yaml", ".md", ".py", ".sh", ".csv", ".ipynb"}


def outside_file(page, target):
    """The file that a page's link names, where it is none of the pages."""
    if re.match(r"[a-z]+:", target):
        return None
    file = pathlib.Path(os.path.normpath(DOCS / os.path.dirname(page) / target))
    if DOCS in file.parents:
        return None
    if ROOT not in file.parents or not file.is_file():
        raise SystemExit(f"{page}: there is no file {target}")
    return file


def published_name(file):
    """Sources are shown as texts and not downloaded."""
    return f"files/{file.relative_to(ROOT)}" + (".txt" if file.suffix in SHOWN_AS_TEXT else "")


def on_files(files, config):
    for script in [file for file in files if file.src_path.endswith(".py")]:
        files.remove(script)
    for page in files.documentation_pages():
        for _, target in LINK.findall(pathlib.Path(page.abs_src_path).read_text(encoding="utf-8")):
            file = outside_file(page.src_path, target)
            if file is None or files.get_file_from_path(published_name(file)) is not None:
                continue
            published = File(published_name(file), str(DOCS), config["site_dir"], use_directory_urls=False)
            published.abs_src_path = str(file)
            files.append(published)
    return files


def on_page_markdown(markdown, page, config, files):
    def published(match):
        file = outside_file(page.file.src_path, match[2])
        if file is None:
            return match[0]
        return match[1] + os.path.relpath(published_name(file), os.path.dirname(page.file.src_path) or ".")

    return LINK.sub(published, markdown)

#!/usr/bin/env python3
"""Rewrites what the pages quote of the program: the page of commands, the gallery's numbers, outputs behind `$ foretrain`.

reports/docs/refresh.py build/foretrain            writes them anew
reports/docs/refresh.py build/foretrain --check    says what has changed, and fails
"""

import argparse
import collections
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parents[1]
TEMPLATE = ROOT / "reports/gallery/gallery.md"
PLACE = re.compile(r"{{(.*?)}}(?!})")
REPLAYED = re.compile(r"\[\[replayed (\S+)\]\]")  # a record of foretrain-gpu replay
RAN = re.compile(r"\[\[ran (\S+) (\S+)( memory_per_gpu)?\]\]")  # a table of cases, which of their names, what of them


class Program:
    def __init__(self, path):
        self.path = pathlib.Path(path).absolute()
        self.environment = {**os.environ, "PATH": f"{self.path.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        self.environment.pop("COLUMNS", None)

    def run(self, *arguments):
        done = subprocess.run([self.path, *arguments], capture_output=True, text=True, env=self.environment, cwd=ROOT)
        if done.returncode != 0:
            raise SystemExit(f"foretrain {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def shell(self, command, folder):
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=self.environment, cwd=folder)
        return done.stdout + done.stderr


# --- The page of commands ------------------------------------------------------------------------------------------


def commands_page(program):
    """Options that several commands have in the same words come once, at the top."""
    help_text = program.run("--help")
    names = re.findall(r"^  ([a-z-]+) {2,}", help_text.split("--version")[1].split("Examples:")[0], re.MULTILINE)
    option = re.compile(r"^  -.*\n(?:^ {8,}\S.*\n)*", re.MULTILINE)
    helps = {name: program.run(name, "--help").strip() + "\n" for name in names}
    counts = collections.Counter(one for text in helps.values() for one in dict.fromkeys(option.findall(text)))
    common = [one for one in counts if counts[one] > 2]
    page = ["# Commands", "", "What each command's `--help` says; `make quotes` writes this page.", "",
            "## Common options", "", "```text", "".join(common).rstrip(), "```", ""]
    for name, text in helps.items():
        own = option.sub(lambda one: "" if one[0] in common else one[0], text)
        also = [re.match(r"  (?:-.,)?(\S+)", one)[1] for one in option.findall(text) if one in common]
        own += f"  also: {', '.join(one for one in also if one != '--help')}\n" if len(also) > 1 else ""
        own = own.replace("Options:\n\n", "").rstrip().removesuffix("\nOptions:")
        page += [f"## foretrain {name}", "", "```text", own.rstrip(), "```", ""]
    return "\n".join(page)


# --- The gallery ----------------------------------------------------------------------------------------------------


def three_digits(value):
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def in_words(path, value):
    """A number of the JSON as people write it: the unit follows from its name."""
    if isinstance(value, (str, int)):
        return str(value) if isinstance(value, str) or abs(value) < 1e6 else in_words(path, float(value))
    if path.endswith("_s") or "_s." in path:
        for unit, factor in (("days", 86400.0), ("hours", 3600.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
            if abs(value) >= (3 * factor if factor > 1.0 else factor):
                return f"{three_digits(value / factor)} {unit}"
    if "bytes" in path:
        return f"{three_digits(value / 1e9)} GB"
    if "bandwidth" in path:
        return f"{three_digits(value / 1e9)} GB/s"
    if path == "mfu" or "share" in path or path.endswith("goodput"):
        return f"{100.0 * value:.4g} %" if 0.995 < value < 1.0 else f"{three_digits(100.0 * value)} %"
    return three_digits(value)


class Numbers:
    """Numbers of predictions by `SCENARIO [KEY=VALUE; …] [ : PATH]`; without a path its time."""

    def __init__(self, program, template):
        wanted = {self.scenario(place) for text in PLACE.findall(template) for place in text.split(" / ")}
        self.results = {}
        plain = sorted(name for name, changes in wanted if not changes)
        self.results = dict(zip([(name, ()) for name in plain], json.loads(program.run("predict", *plain, "--json"))))
        for name, changes in sorted(wanted):
            if changes:
                options = [word for change in changes for word in ("--set", change)]
                self.results[name, changes] = json.loads(program.run("predict", name, *options, "--json"))

    @staticmethod
    def scenario(place):
        name, *changes = place.split(" : ")[0].strip().split(" ", 1)
        return name, tuple(change.strip() for change in changes[0].split(";")) if changes else ()

    def value(self, place):
        path = place.split(" : ")[1].strip() if " : " in place else ""
        found = self.results[self.scenario(place)]
        if not path:
            path = "step_time_s" if "step_time_s" in found else "time_s"
        for key in path.split("."):
            found = found[key]
        return path, found

    def text(self, match):
        places = match[1].split(" / ")
        if len(places) == 1:
            return in_words(*self.value(places[0]))
        return three_digits(self.value(places[0])[1] / self.value(places[1])[1])


def section_commands(section):
    """The commands that give the numbers of an entry."""
    places = [place for text in PLACE.findall(section) for place in text.split(" / ")]
    scenarios = dict.fromkeys(Numbers.scenario(place) for place in places)
    plain = [name for name, changes in scenarios if not changes]
    lines = textwrap.wrap("foretrain predict " + " ".join(plain), 100, subsequent_indent="  ", break_on_hyphens=False)
    lines = [" \\\n".join(lines)] if plain else []
    for name, changes in scenarios:
        if changes:
            lines.append(f"foretrain predict {name}" + "".join(f" --set '{change}'" for change in changes))
    return "\n".join(["```", *lines, "```"])


def with_runs(program, template):
    """Errors of tables' runs that the template asks for."""
    known = {}

    def text(match):
        table, names, quantity = match.groups()
        if table not in known:
            known[table] = json.loads(program.run("validate", "--cases", table, "--json"))["cases"]
        errors = [abs(one["error"]) for one in known[table] if re.search(names, one["case"]) and
                  (one["quantity"] == "memory_per_gpu") == bool(quantity)]
        return f"{len(errors)} runs, {100.0 * sum(errors) / len(errors):.1f} %"

    def replayed(match):
        record = json.loads((ROOT / match[1]).read_text(encoding="utf-8"))
        measured, predicted = (in_words("time_s", value) for value in (record["step"]["median"], record["predicted_s"]))
        return f"{measured} (blind prediction: {predicted})"

    return REPLAYED.sub(replayed, RAN.sub(text, template))


def gallery_page(program):
    template = with_runs(program, TEMPLATE.read_text(encoding="utf-8"))
    numbers = Numbers(program, template)
    sections = re.split(r"(?m)^(?=## )", template)
    filled = [section.replace("[[commands]]", section_commands(section)) for section in sections]
    return PLACE.sub(numbers.text, "".join(filled))


# --- Outputs --------------------------------------------------------------------------------------------------------


def with_outputs(program, page):
    """The page with what its ```console blocks print. A block runs in an empty folder, which all of a page share; lines
    from `$ ` to the next one are its output, and `$ cat > FILE <<…` writes a file."""
    with tempfile.TemporaryDirectory() as folder:

        def rerun(block):
            commands, lines = [], iter(block[1].splitlines())
            for line in lines:
                if not line.startswith("$ "):
                    continue
                command = [line[2:]]
                if end := re.search(r"<<'?(\w+)'?", line):
                    for more in lines:
                        command.append(more)
                        if more == end[1]:
                            break
                commands.append("\n".join(command))
            told = [f"$ {one}\n{program.shell(one, folder)}" for one in commands]
            return "```console\n" + "".join(text if text.endswith("\n") else text + "\n" for text in told) + "```"

        return re.sub(r"```console\n(.*?)```", rerun, page, flags=re.DOTALL)


def pages_of(program):
    yield DOCS / "commands.md", commands_page(program)
    yield DOCS / "gallery.md", gallery_page(program)
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        page = path.read_text(encoding="utf-8")
        if "```console" in page:
            yield path, with_outputs(program, page)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program")
    arguments.add_argument("--check", action="store_true")
    options = arguments.parse_args()
    changed = False
    for path, page in pages_of(Program(options.program)):
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if before == page:
            continue
        changed = True
        if options.check:
            name = str(path.relative_to(ROOT))
            sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), page.splitlines(True), name, name))
        else:
            path.write_text(page, encoding="utf-8")
    if options.check and changed:
        raise SystemExit("pages quote what the program no longer says; `make quotes` writes them anew")


if __name__ == "__main__":
    main()

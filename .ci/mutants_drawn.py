"""Mistakes of one line, drawn by syntax: which, a seed says. Used by .ci/mutants."""

import random
import re

from mutants_switched import blanked

# A folder's test program; the longest that a file's name begins with counts.
PARTS = {
    "model/base/": "base", "model/hardware/": "hardware", "model/workload/": "workload", "model/cost/": "cost",
    "model/collectives/": "collectives", "model/parallelism/": "parallelism", "model/graph/": "graph",
    "model/scenario/": "scenario", "model/memory/": "memory", "model/training/": "training", "model/loading/": "loading",
    "model/tasks/": "tasks", "model/parameter_server/": "parameter_server", "model/goodput/": "goodput",
    "model/job/": "job", "model/result": "job", "model/planning/": "planning", "sim/": "sim",
    "validate/measure/": "measure", "validate/replay/": "replay", "validate/export/": "export", "validate/fit/": "fit",
    "validate/host_replay/": "host_replay", "validate/host_calibration/": "host_calibration", "validate/learn/": "learn",
    "reports/print/": "reports", "reports/figure/": "reports", "reports/keys/": "reports", "reports/result/": "reports",
    "reports/studies/": "reports", "reports/explain/": "reports", "reports/measured/": "reports", "reports/page/": "page",
    "reports/import/": "import", "reports/cli/": "cli", "reports/serve/": "cli",
}

NAME = r"[A-Za-z_][A-Za-z_0-9]*(?:(?:\.|->|::)[A-Za-z_][A-Za-z_0-9]*)*(?:\(\))?"
OPPOSITE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def twice(match):
    return repr(2 * float(match[0]))


# Kind: what is looked for, and what stands there instead.
KINDS = {
    "comparison": (r" (<=|>=|==|!=|<|>) (?!>)", lambda m: f" {OPPOSITE[m[1]]} "),
    "one more": (r"(?<=[+-] )1\b(?!\.)", lambda m: "2"),
    "one less": (r" [+-] 1\b(?!\.)", lambda m: ""),
    "operands": (rf"({NAME}) ([-/]) ({NAME})", lambda m: f"{m[3]} {m[2]} {m[1]}"),
    "sum": (r" ([+*]) (?=[A-Za-z(0-9])", lambda m: f" {'-' if m[1] == '+' else '/'} "),
    "term": (rf" [+-] {NAME}(?=[;,)])", lambda m: ""),
    "extreme": (r"\bstd::(min|max)\b", lambda m: f"std::{'max' if m[1] == 'min' else 'min'}"),
    "constant": (r"(?<![A-Za-z_0-9.])\d+\.\d+(?:e-?\d+)?(?![A-Za-z_0-9.])", twice),
    "condition": (r" (&&|\|\|) ", lambda m: f" {'||' if m[1] == '&&' else '&&'} "),
    "not": (r"(?<=[( ])!(?=[A-Za-z_(])", lambda m: ""),
    "truth": (r"\b(true|false)\b", lambda m: "false" if m[1] == "true" else "true"),
}


def part_of(name):
    """The test program of a source file; nothing where it has none."""
    if not name.endswith((".cpp", ".hpp")):
        return None
    known = [folder for folder in PARTS if name.startswith(folder)]
    return PARTS[max(known, key=len)] if known else None


def code_of(line):
    """The line with its strings and comment as blanks, so that places stay."""
    code = blanked(line)
    return "" if re.match(r"\s*(#|template|static_assert|using|friend|\*)", code) else code


def sites(kind, sources):
    """(file, old line, new line) of each place of a kind of mistake, on lines that their file has once."""
    pattern, instead = KINDS[kind]
    for name in sorted(sources):
        lines = [line.strip() for line in sources[name].split("\n")]
        counts = {}
        for line in lines:
            counts[line] = counts.get(line, 0) + 1
        for line in lines:
            if counts[line] != 1:
                continue
            code = code_of(line)
            for match in re.finditer(pattern, code):
                new = line[: match.start()] + instead(match) + line[match.end() :]
                if new != line:
                    yield name, line, new


def draw(seed, count, sources):
    """`count` mistakes as (test, file, old line, new line): a kind first, then one of its places."""
    chance = random.Random(seed)
    places = {kind: list(sites(kind, sources)) for kind in KINDS}
    kinds = [kind for kind in KINDS if places[kind]]
    drawn = []
    while len(drawn) < count:
        name, old, new = chance.choice(places[chance.choice(kinds)])
        mistake = (part_of(name), name, old, new)
        if mistake not in drawn:
            drawn.append(mistake)
    return drawn

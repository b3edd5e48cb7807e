"""Widths of the printed ranges: `leave_one_out --ranges`.

Every row that ships is predicted once with all `uncertainty.*` at 1, so that the shares of its range's causes are those of
the time. Rows of the fits of `leave_one_out` are predicted with the constants that were found without their group. A range
rests on rows whose time is a kind's for the most part: what their other parts allow is taken off first.

A group weighs as its rows do, but as eight at most, so that the sixty rows of one table do not drown the six of another. With
n rows so counted, a range holds 0.9 (1 + 1/n) of their weight: the next row is as likely as any to be the farthest off."""
import collections
import csv
import glob
import math
import os
import re
import tempfile

import catalogue

LEVEL = 0.9
MOST = 8  # rows that a group weighs as
LEAST = 0.75  # of each group of as many and more, whatever the others are

# Kinds that are as often faster as slower; of all others `faster` says by how much they may be.
EITHER_WAY = ["experts", "small_between_nodes", "kernel", "small_kernel", "four_bit"]
# Kinds that steps wait for come before steps.
KINDS = ["kernel", "small_kernel", "four_bit", "collective", "small_collective", "between_nodes", "small_between_nodes",
         "processor", "servers", "network", "recipe", "plain", "experts", "unnamed"]

# Groups that no range is made of, with the reason.
LEFT_OUT = {
    "nccl-h100-two-nodes": "two of a node's eight NICs were used, and the library is unknown",
    "dlperf-bert-base-NGC TensorFlow 1.x": "two to three times as slow as similar frameworks, so not tuned",
    "dlperf-bert-base-PaddlePaddle": "two to three times as slow as similar frameworks, so not tuned",
    "host-mpi": "MPI waits with all cores busy, which delays others' messages: half of its algorithms are 80 % late",
}
# Reports of users state too little of what decides their time (reports/docs/public-reports.md).
LEFT_OUT |= {f"report-{report}": "a report that leaves settings open" for report in
             ("rtx3090-resnet50-64", "rtx3090-resnet50-256", "rtx3090-vgg16-64", "rtx3090-vgg16-256", "falcon",
              "falcon-offload", "zero3-short", "fsdp", "ec2-tcp", "bridge", "roce")}
# Steps of foretrain replay, in which compute takes its predicted time.
LEFT_OUT |= {f"own-{way}": "compute takes its predicted time in a replay" for way in
             ("tensor", "pipeline", "data", "sharded", "context", "experts", "mixed", "servers")}
# Errors of products and collectives without their GPU over with it, if both are known (section One GPU left out).
INFLATED = {"kernel": 1.13, "small_kernel": 1.13, "collective": 1.13}


class Row:
    def __init__(self, group, kind_shares, late):
        self.group, self.shares = group, kind_shares
        self.late = late  # ln(measured / predicted)
        self.kind = max(kind_shares, key=kind_shares.get)

    def weight(self, sizes):
        return min(sizes[self.group], MOST) / sizes[self.group]


def predicted(program, files):
    """Rows of tables, with shares of time by kind."""
    alike = {name: 1.0 for name in re.findall(r"^  (uncertainty\.\w+): ", catalogue.published(), re.M)}
    # A trainer without a name has the wider of its kind's range and that of its like; experts have the widest.
    alike |= {"uncertainty.unnamed": 1.000001, "uncertainty.experts": 1.000002}
    rows = []
    for case in catalogue.validated(program, files, alike, "--fidelity", "estimate"):
        if "causes" not in case:
            continue
        shares = collections.Counter()
        for constant, part in case["causes"].items():
            shares[constant.removeprefix("uncertainty.")] += part
        rows.append(Row(case["group"], shares, -math.log1p(case["error"])))
    return rows


def without_trainer(path, folder):
    """The table as somebody would write it who does not know the trainer; None where it names none."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    named = {"plan.framework", "plan.trainer"} & rows[0].keys()
    if not named:
        return None
    target = os.path.join(folder, os.path.basename(path))
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [key for key in rows[0] if key not in named], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return target


def shipped_rows(tools, program):
    files = sorted(glob.glob(os.path.join(catalogue.CASES, "*.csv")))
    rows = predicted(program, files)
    moved = collections.defaultdict(list)  # of each row of a group, by the fits that it had a part in
    for constants, tables, groups in tools.FITS:
        for group, own, _, without in tools.left_out(program, constants, tables, groups):
            changes = [b - a for a, b in zip(own, without)]
            moved[group] = [a + b for a, b in zip(moved[group], changes)] if moved[group] else changes
    with tempfile.TemporaryDirectory() as folder:
        unnamed = predicted(program, [path for path in (without_trainer(file, folder) for file in files) if path])
    result = []
    for list_, suffix in ((rows, ""), (unnamed, " (unnamed)")):
        seen = collections.Counter()
        for row in list_:
            at = seen[row.group]
            seen[row.group] += 1
            if row.group in moved:
                row.late -= moved[row.group][at]
            if suffix and row.kind != "unnamed":
                continue
            row.late *= INFLATED.get(row.kind, 1.0)
            row.group += suffix
            result.append(row)
    return result


def weighted_quantile(pairs, level):
    """The least value that so much of the weight does not exceed."""
    pairs = sorted(pairs)
    goal, sum_ = level * sum(weight for _, weight in pairs) - 1e-9, 0.0
    for value, weight in pairs:
        sum_ += weight
        if sum_ >= goal:
            return value
    return pairs[-1][0]


def faster_of(ranges, kind):
    return ranges[kind] if kind in EITHER_WAY else ranges["faster"]


def held(row, ranges, narrower=1.0):
    low = narrower * sum(part * faster_of(ranges, kind) for kind, part in row.shares.items())
    high = narrower * sum(part * ranges[kind] for kind, part in row.shares.items())
    return -math.log1p(low) <= row.late <= math.log1p(high)


def hundredths(share):
    return math.ceil(100.0 * share - 1e-6) / 100.0


def need_of(kind, row, ranges):
    """The range of the kind that would hold the row beside what the other kinds' ranges allow."""
    others = {k: part for k, part in row.shares.items() if k != kind}
    slower = (math.expm1(row.late) - sum(part * ranges[k] for k, part in others.items())) / row.shares[kind]
    faster = (math.expm1(-row.late) - sum(part * faster_of(ranges, k) for k, part in others.items())) / row.shares[kind]
    if kind in EITHER_WAY:
        return max(slower, faster, 0.0)
    return max(slower, 0.0) if faster <= ranges["faster"] else math.inf  # no slow end holds what is too fast


def range_of(kind, rows, ranges):
    sizes = collections.Counter(row.group for row in rows)
    count = sum(min(size, MOST) for size in sizes.values())
    level = min(1.0, LEVEL * (1.0 + 1.0 / count))
    pairs = [(need_of(kind, row, ranges), row.weight(sizes)) for row in rows]
    if kind == "unnamed":  # what may be any trainer has a slow end of its own: a twentieth is later
        pairs, level = [(need, weight) for need, weight in pairs if need < math.inf], (1.0 + LEVEL) / 2.0
    need = weighted_quantile(pairs, level)
    return hundredths(need if need < math.inf else max(need for need, _ in pairs if need < math.inf))


def hold_groups(rows, ranges):
    """Widens the range of the kind that most rows of a group are of, until three of four of the group lie in theirs."""
    by_group = collections.defaultdict(list)
    for row in rows:
        by_group[row.group].append(row)
    for group in by_group.values():
        kind = collections.Counter(row.kind for row in group).most_common(1)[0][0]
        while len(group) >= MOST and share_held(group, ranges) < LEAST:
            needs = [need_of(kind, row, ranges) for row in group if row.kind == kind and not held(row, ranges)]
            needs = [need for need in needs if need < math.inf]
            if not needs:
                break
            ranges[kind] = max(hundredths(min(needs)), hundredths(ranges[kind] + 0.01))


def made(rows):
    """All ranges. `faster` is the least that no more than a twentieth of any late kind goes beyond."""
    by_kind = {kind: [row for row in rows if row.kind == kind and row.group not in LEFT_OUT] for kind in KINDS}
    ranges = {**{kind: 0.0 for kind in KINDS}, "faster": 0.0}
    for kind in KINDS:
        if kind in EITHER_WAY or not by_kind[kind]:
            continue
        sizes = collections.Counter(row.group for row in by_kind[kind])
        early = weighted_quantile([(math.expm1(-row.late), row.weight(sizes)) for row in by_kind[kind]], (1.0 + LEVEL) / 2.0)
        ranges["faster"] = max(ranges["faster"], hundredths(early))
    for _ in range(3):
        for kind in KINDS:
            if by_kind[kind]:
                ranges[kind] = range_of(kind, by_kind[kind], ranges)
    hold_groups([row for list_ in by_kind.values() for row in list_], ranges)
    wider = {kind: widened(kind, rows, ranges) for kind, rows in by_kind.items()}
    ranges |= {kind: hundredths(times * ranges[kind]) for kind, times in wider.items()}
    return ranges, by_kind, wider


def percent(part):
    return f"{100.0 * part:.0f} %"


def share_held(rows, ranges, narrower=1.0):
    return sum(held(row, ranges, narrower) for row in rows) / len(rows)


def mean_of(groups, rows):
    """Of shares by group, each group weighing as it does in the range."""
    sizes = collections.Counter(row.group for row in rows)
    weights = {group: min(sizes[group], MOST) for group in groups}
    return sum(part * weights[group] for group, part in groups.items()) / sum(weights.values())


def widened(kind, rows, ranges):
    """Factor on the range that makes it hold its share, less 3 %, of the groups left out."""
    times = 1.0
    while times < 2.0:
        groups = unseen(kind, rows, ranges, times)
        if not groups or mean_of(groups, rows) >= LEVEL - 0.03:
            break
        times += 0.05
    return times


def unseen(kind, rows, ranges, times=1.0):
    """For each group, what a range holds of it that was made without it, so many times as wide."""
    result = {}
    for group in sorted({row.group for row in rows}):
        others = [row for row in rows if row.group != group]
        if others:
            without = {**ranges, kind: times * range_of(kind, others, ranges)}
            result[group] = share_held([row for row in rows if row.group == group], without)
    return result


def section(ranges, by_kind, all_rows, wider):
    lines = ["## Ranges", "",
             "`tests/benchmark/leave_one_out --ranges` fits `uncertainty.*` to these rows and writes this section. Rows of a fit are",
             "predicted by estimate, without their group. Coverage is the share of rows within the range. A group counts as at most eight rows.", "",
             "| Kind | Rows | Groups | Range | Coverage | at 0.6 of the width | of left-out groups | Worst left-out group |",
             "|---|---|---|---|---|---|---|---|"]
    for kind in KINDS:
        rows = by_kind[kind]
        if not rows:
            continue
        sizes = collections.Counter(row.group for row in rows)
        groups = unseen(kind, rows, ranges, wider[kind])
        large = {group: part for group, part in groups.items() if sizes[group] >= MOST}
        worst = min(large, key=lambda group: (large[group], group), default="")
        lines.append(
            f"| `{kind}` | {len(rows)} | {len(sizes)} | ÷ {1.0 + faster_of(ranges, kind):.2f} … × {1.0 + ranges[kind]:.2f} "
            f"| {percent(share_held(rows, ranges))} | {percent(share_held(rows, ranges, 0.6))} "
            f"| {percent(mean_of(groups, rows)) if groups else ''} "
            f"| {f'{worst}: {percent(large[worst])}' if worst else ''} |")
    lines += ["", "Groups outside the fit, with their rows and coverage:", ""]
    for why in dict.fromkeys(LEFT_OUT.values()):
        groups = []
        for group in (one for one, reason in LEFT_OUT.items() if reason == why):
            rows = [row for row in all_rows if row.group == group]
            groups.append(f"{group} ({len(rows)}, {percent(share_held(rows, ranges))})")
        lines.append(f"- {', '.join(groups)}: {why}.")
    return "\n".join(lines) + "\n"


def sources(ranges, by_kind, wider):
    """The rows of published.yaml."""
    result = {}
    for kind in KINDS:
        rows = by_kind[kind]
        sizes = collections.Counter(row.group for row in rows)
        names = [group for group, _ in sizes.most_common(3)]
        groups = unseen(kind, rows, ranges, wider[kind])
        result[kind] = (f"fitted to {len(rows)} rows of {len(sizes)} "
                        f"group{'s' if len(sizes) > 1 else ''} ({', '.join(names)}{' and others' if len(sizes) > 3 else ''}), "
                        f"each counted as at most {MOST} rows; the interval holds {percent(share_held(rows, ranges))} of them, "
                        f"{percent(mean_of(groups, rows)) if groups else 'unknown'} of left-out groups "
                        "(tests/benchmark/leave_one_out --ranges)")
    late = [kind for kind in KINDS if kind not in EITHER_WAY]
    result["faster"] = ("at most 5 % of the measured rows of each kind are faster than predicted by more "
                        f"({sum(len(by_kind[kind]) for kind in late)} rows; tests/benchmark/leave_one_out --ranges); intervals "
                        f"of {', '.join(EITHER_WAY)} are symmetric instead")
    return result


def write(ranges, by_kind, page, wider):
    path = catalogue.PUBLISHED
    text = open(path, encoding="utf-8").read()
    for kind, source in sources(ranges, by_kind, wider).items():
        row = f'  uncertainty.{kind}: {{ value: {ranges[kind]:.2f}, kind: fit, source: "{source}" }}'
        text, found = re.subn(rf"^  uncertainty\.{kind}: .*$", lambda _, row=row: row, text, flags=re.M)
        assert found == 1, kind
    open(path, "w", encoding="utf-8").write(text)
    path = os.path.join(catalogue.SCENARIOS, "..", "reports", "docs", "cross-validation.md")
    text = open(path, encoding="utf-8").read()
    before = text[:text.index("\n## Ranges")] if "\n## Ranges" in text else text.rstrip("\n") + "\n"
    open(path, "w", encoding="utf-8").write(before.rstrip("\n") + "\n\n" + page)


def make(tools, options):
    rows = shipped_rows(tools, options.program)
    ranges, by_kind, wider = made(rows)
    page = section(ranges, by_kind, rows, wider)
    print(page)
    if options.check:
        others = collections.defaultdict(list)
        for row in predicted(options.program, options.check):
            others[row.kind, row.group].append(row)
        for kind in KINDS:
            groups = {group: list_ for (own, group), list_ in others.items() if own == kind}
            if not groups:
                continue
            whole = [row for list_ in groups.values() for row in list_]
            print(f"{kind}: {percent(share_held(whole, ranges))} of {len(whole)} rows that had no part in it")
            for group, list_ in groups.items():
                print(f"    {group}: {percent(share_held(list_, ranges))} of {len(list_)}")
    if options.write:
        write(ranges, by_kind, page, wider)

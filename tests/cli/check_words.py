#!/usr/bin/env python3
"""Fails where a page uses a retired word, and says which term replaces it. Pages include the lists of commands and keys, so
that help texts and descriptions of keys are covered.

check_words.py FILE…"""

import pathlib
import re
import sys

RETIRED = {
    r"chain of tasks": "critical path",
    r"what each resource is worth|is worth most": "sensitivity",
    r"no part in it": "no effect",
    r"what would help": "single changes, remedies",
    r"please note": "warnings",
    r"\brests on\b": "model constants",
    r"\btraits?\b|\bhabits?\b": "framework setting",
    r"\ba GPU sends\b": "sent per GPU",
    r"waiting for data|waits for data": "data stall",
    r"\bby chance\b": "percentiles, jitter",
    r"runners?-up": "alternatives",
    r"how sure": "confidence, uncertainty",
    r"fullest (GPU|card)": "peak GPU memory",
    r"\breckon": "compute",
    r"\btells? of\b": "state, print, describe",
    r"\bremembered\b": "cached",
    r"thin uplink": "oversubscribed uplink",
    r"page-locked": "pinned",
    r"matrix products?|products of matrices": "GEMM",
    r"network cards?": "NIC",
    r"exchange of tokens|exchanging takes": "expert all-to-all, communication",
    r"keys and values": "ring attention",
    r"\bwhoever\b": "the user, anyone who",
    r"\bmeanwhile\b": "during it",
    r"\bheld against\b": "compared with",
}


def main(files: list[str]) -> int:
    found = 0
    for name in files:
        for number, line in enumerate(pathlib.Path(name).read_text(encoding="utf-8").splitlines(), 1):
            for pattern, term in RETIRED.items():
                for match in re.finditer(pattern, line, re.IGNORECASE):
                    print(f"{name}:{number}: “{match.group()}”; say: {term}")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

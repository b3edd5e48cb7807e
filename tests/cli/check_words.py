#!/usr/bin/env python3
"""Fails where a page, a comment or a text of a source uses a retired word, and says which term replaces it. Fails as well
where more than 2 % of the sentences of pages, or of comments, have more than 30 words.

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
    r"\btells? of\b|\btold\b": "state, print, report",
    r"\bremembered\b": "cached",
    r"thin uplink": "oversubscribed uplink",
    r"page-locked": "pinned",
    r"matrix products?|products of matrices": "GEMM",
    r"network cards?": "NIC",
    r"exchange of tokens|exchanging takes": "expert all-to-all, communication",
    r"rings? of keys and values": "ring attention",
    r"\bwhoever\b": "the user, anyone who",
    r"\bmeanwhile\b": "during it",
    r"\bheld against\b": "compared with",
    r"\bwhat is left of\b": "remaining",
    r"\bwell-tuned\b": "tuned",
}


MOST_WORDS, MOST_LONG = 30, 0.02
NAMES = {  # of settings files and JSON fields, which keep them
    "model/scenario/document_walk.cpp": "habits",
    "reports/result/result_fields.hpp": "traits",
}


def texts(source: str) -> str:
    """Comments and strings, with the numbers of their lines."""
    return "\n".join(" ".join(re.findall(r'//.*|"[^"]*"', line)) for line in source.splitlines())


def comments(source: str) -> str:
    """A line for each of the source; comments behind code end in a full stop."""
    lines = []
    for line in source.splitlines():
        own = re.match(r"\s*///?<? ?(.*)", line)
        behind = re.search(r"\s//+<? (.*)", line)
        lines.append(own[1] if own else behind[1] + ". " if behind else "")
    return "\n".join(lines)


def sentences(page: str) -> list[str]:
    """Of paragraphs and lists, not of tables and code."""
    text = re.sub(r"^```.*?^```|^\|.*?$", "\n\n", page, flags=re.DOTALL | re.MULTILINE)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text)
    return [one for paragraph in paragraphs for one in re.split(r"(?<=[.!?])\s+", paragraph) if re.search(r"\w", one)]


def word_count(sentence: str) -> int:
    """A name in backticks and a remark in brackets count as one word each."""
    return len(re.findall(r"[^\W\d_][\w'’-]*", re.sub(r"`[^`]*`|\([^)]*\)|https?\S+", "x", sentence)))


def too_long(what: str, pages: list[str]) -> bool:
    all_sentences = [one for page in pages for one in sentences(page)]
    long = [one for one in all_sentences if word_count(one) > MOST_WORDS]
    if len(long) <= MOST_LONG * len(all_sentences):
        return False
    print(f"{len(long)} of {len(all_sentences)} sentences of {what} have more than {MOST_WORDS} words:", *long, sep="\n  ")
    return True


def main(files: list[str]) -> int:
    found = 0
    read = {name: pathlib.Path(name).read_text(encoding="utf-8") for name in files}
    pages = {name: text for name, text in read.items() if name.endswith(".md")}
    sources = {name: text for name, text in read.items() if name not in pages}
    own_words = {name: texts(text) for name, text in sources.items() if not name.startswith("tests/")}
    for name, text in {**pages, **own_words}.items():
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, term in RETIRED.items():
                for match in re.finditer(pattern, line, re.IGNORECASE):
                    if match.group() != NAMES.get(name):
                        print(f"{name}:{number}: “{match.group()}”; say: {term}")
                        found += 1
    long_pages = too_long("pages", list(pages.values()))
    long_comments = too_long("comments", [comments(text) for text in sources.values()])
    return 1 if found or long_pages or long_comments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

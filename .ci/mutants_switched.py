"""Mistakes as switches: each expression that has one becomes (foretrain_mutant(i) ? (wrong) : (right)), so that one build
has them all (.ci/mutant_switch.hpp). Used by .ci/mutants."""

import re

LITERALS = (r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:[^"\\\n]|\\.)*"|(?<![0-9A-Za-z])\'(?:[^\'\\\n]|\\.)\'|//[^\n]*|/\*(?:.|\n)*?\*/')
WORD_BEFORE_EXPRESSION = re.compile(r"\b(return|throw|case|else)$")


def blanked(text):
    """The text with strings, characters and comments as blanks, so that places stay."""
    return re.sub(LITERALS, lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def ends_expression(code, i):
    """Whether no expression goes on over the character at i, outside brackets: ; , ? : and assignments."""
    if code[i] == ":":
        return ":" not in (code[i - 1], code[i + 1])
    assigns = code[i] == "=" and code[i - 1] not in "=!<>" and code[i + 1] != "="
    return code[i] in ";,?" or assigns


def expression_around(code, begin, end):
    """The longest expression, as [first, last), that has [begin, end) outside its brackets."""
    depth, first = 0, begin
    while first > 0:
        c = code[first - 1]
        if depth == 0 and (c in "([{" or ends_expression(code, first - 1) or code[first - 1 : first + 1] == "}\n"
                           or WORD_BEFORE_EXPRESSION.search(code[max(0, first - 9) : first])
                           and not (code[first].isalnum() or code[first] == "_")):
            break
        depth += (c in ")]}") - (c in "([{")
        first -= 1
    depth, last = 0, begin
    while last < len(code):
        c = code[last]
        if depth == 0 and (c in ")]}" or last >= end and ends_expression(code, last)):
            break
        depth += (c in "([{") - (c in ")]}")
        last += 1
    while code[first].isspace():
        first += 1
    while code[last - 1].isspace():
        last -= 1
    return first, last


def changed_part(text, old, new):
    """Difference of the line `old` of the text from `new`: [begin, end), and the new text there."""
    at = 0
    for line in text.split("\n"):
        if line.strip() == old:
            at += line.index(old)
            break
        at += len(line) + 1
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    behind = 0
    while behind < min(len(old), len(new)) - same and old[-1 - behind] == new[-1 - behind]:
        behind += 1
    return at + same, at + len(old) - behind, new[same : len(new) - behind]


def with_mistake(text, old, new):
    begin, end, instead = changed_part(text, old, new)
    return text[:begin] + instead + text[end:]


def switched(text, mistakes):
    """The text with a switch for each of `mistakes` = {number: (old line, new line)}; numbers of those that share an
    expression with another one have none, and are returned beside it."""
    code, edits, alone = blanked(text), [], set()
    for number, (old, new) in mistakes.items():
        begin, end, instead = changed_part(text, old, new)
        first, last = expression_around(code, begin, end)
        if any(first < edit[1] and edit[0] < last for edit in edits):
            alone.add(number)
            continue
        right, wrong = text[first:last], text[first:begin] + instead + text[end:last]
        kind = "bool" if text[begin:end] == "!" else ""  # what is tested need not be of the type that its opposite has
        edits.append((first, last, f"(foretrain_mutant({number}) ? {kind}({wrong}) : {kind}({right}))"))
    for first, last, edit in sorted(edits, reverse=True):
        text = text[:first] + edit + text[last:]
    return text, alone


def switches_near(text, line):
    """Numbers of the switches on a line and beside it: where the compiler complains, one of them is why."""
    lines = text.split("\n")[max(0, line - 3) : line + 2]
    return {int(number) for number in re.findall(r"foretrain_mutant\((\d+)\)", "\n".join(lines))}

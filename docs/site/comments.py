# SPDX-License-Identifier: BSD-3-Clause
"""The comments of the public headers as text with structure: paragraphs, terms with what they mean, and code. The layout alone
says which is which:

    prose from the first column on
      term       two spaces or more between a term and its meaning; the meaning goes on under itself
        code     anything else that is indented
"""
import re

TERM = re.compile(r"^( *)(\S+(?:,? \S+)*?)(  +)(\S.*)$")
LONGEST_TERM = 46


def uncommented(lines):
    """The text of // lines."""
    return [re.sub(r"^// ?", "", line).rstrip() for line in lines]


def indent(line):
    return len(line) - len(line.lstrip())


def term_of(line):
    """Term, meaning, column of the meaning and of the term; None if the line is something else."""
    match = TERM.match(line)
    if not match or len(match[2]) > LONGEST_TERM or re.search(r"[{}]|//|\S   +\S", match[2] + match[4]):
        return None
    return match[2], match[4], match.start(4), len(match[1])


def parse(lines):
    """Parts: ("text", words), ("terms", [(term, parts)]), ("code", lines)."""
    parts, at = [], 0
    while at < len(lines):
        if not lines[at]:
            at += 1
        elif starts_terms(lines, at):
            at = parse_terms(lines, at, parts)
        elif indent(lines[at]) >= 2:
            at = parse_code(lines, at, parts)
        else:
            at = parse_text(lines, at, parts)
    return parts


def starts_terms(lines, at):
    """A term at the first column is one only if its meaning goes on under itself, or a further term has the same column."""
    found = term_of(lines[at])
    if not found:
        return False
    following = lines[at + 1] if at + 1 < len(lines) else ""
    after = term_of(following)
    return found[3] >= 2 or indent(following) == found[2] or bool(after and after[2] == found[2])


def parse_terms(lines, at, parts):
    terms, begin = [], at
    while at < len(lines):
        found = term_of(lines[at]) if at == begin or starts_terms(lines, at) or terms and same_table(lines, at, column) else None
        if not found or terms and found[3] != margin:
            break
        term, meaning, column, margin = found
        body, at = [meaning], at + 1
        while at < len(lines) and lines[at] and indent(lines[at]) >= column:
            body.append(lines[at][column:])
            at += 1
        terms.append((term, parse(body)))
    parts.append(("terms", terms))
    return at


def same_table(lines, at, column):
    found = term_of(lines[at])
    return bool(found and found[2] == column)


def parse_code(lines, at, parts):
    code, margin = [], indent(lines[at])
    while at < len(lines) and (not lines[at] or indent(lines[at]) >= 2) and not starts_terms(lines, at):
        code.append(lines[at][min(margin, indent(lines[at])):])
        at += 1
    while code and not code[-1]:
        code.pop()
    parts.append(("code", code))
    return at


def parse_text(lines, at, parts):
    words = []
    while at < len(lines) and lines[at] and indent(lines[at]) < 2 and not (words and starts_terms(lines, at)):
        words.append(lines[at].strip())
        at += 1
    parts.append(("text", " ".join(words)))
    return at

# SPDX-License-Identifier: BSD-3-Clause
"""One page of the site, from a Markdown file: its address, its headings, its HTML."""
import html
import os
import re

import listing


def slug(text):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def url_of(path):
    """docs/x.md: x.html; README.md of a folder: folder.html; README.md: index.html."""
    if path == "README.md":
        return "index.html"
    path = re.sub(r"/README\.md$", ".md", path)
    path = re.sub(r"^docs/", "", path)
    return re.sub(r"\.md$", ".html", path.lower())


def plain(text):
    """HTML without its tags."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text))).strip()


class Page:
    def __init__(self, path, text, title="", part=""):
        self.path, self.text, self.part = path, text, part
        self.url, self.html, self.headings, self.settings = url_of(path), "", [], []
        first = re.search(r"^# (.+)$", text, re.M)
        self.title = title or (re.sub(r"[`*]", "", first[1]) if first else os.path.basename(path))

    def relative(self, url):
        return os.path.relpath(url or ".", os.path.dirname(self.url) or ".") + ("" if url else "/")

    def found(self):
        """What the search finds here: title and address."""
        return [(self.title, self.url)] + [("%s: %s" % (self.title, text), self.url + "#" + anchor)
                                           for text, anchor, level in self.headings if level > 1] + \
               [(name, self.url + "#" + name) for name in self.settings]

    def texts(self):
        """What the search looks through: title, address and plain text of each part of the page."""
        for part in re.split(r'(?=<h[1-6] id="|<section class="entry")', self.html):
            anchor = re.match(r'<(?:h[1-6]|section class="entry") id="([^"]*)"', part)
            heading = re.match(r"<h[1-6][^>]*>(.*?)</h[1-6]>", part, re.S)
            name = plain(heading[1]) if heading else html.unescape(anchor[1]) if anchor else self.title
            words = plain(part[heading.end():] if heading else part)
            if words:
                title = self.title if name == self.title else "%s: %s" % (self.title, name)
                yield title, self.url + ("#" + anchor[1] if anchor else ""), words

    def render(self, site):
        import markdown_it
        parser = markdown_it.MarkdownIt("commonmark").enable("table")
        tokens = parser.parse(self.text)
        self.mark_headings(tokens)
        if self.path == "docs/settings.md":
            self.mark_settings(tokens)
        self.walk(tokens, site)
        parser.renderer.rules.update(
            fence=lambda *a: listing.block(a[0][a[1]].content, a[0][a[1]].info, self, site),
            code_block=lambda *a: listing.block(a[0][a[1]].content, "", self, site),
            code_inline=lambda *a: listing.inline(a[0][a[1]].content, self, site),
            table_open=lambda *a: '<div class="wide"><table>', table_close=lambda *a: "</table></div>")
        self.html = parser.renderer.render(tokens, parser.options, {})

    def mark_headings(self, tokens):
        seen = {}
        for opening, content in zip(tokens, tokens[1:]):
            if opening.type != "heading_open":
                continue
            text = "".join(child.content for child in content.children)
            anchor = slug(text)
            seen[anchor] = seen.get(anchor, -1) + 1
            anchor += "-%d" % seen[anchor] if seen[anchor] else ""
            opening.attrSet("id", anchor)
            self.headings.append((text, anchor, int(opening.tag[1])))

    def mark_settings(self, tokens):
        """Each row of a table of settings is a place of its own, which the search finds."""
        for row, cell, content in zip(tokens, tokens[1:], tokens[2:]):
            name = re.fullmatch(r"`(GPUSHMEM_\w+)`", content.content)
            if row.type == "tr_open" and cell.type == "td_open" and name and name[1] not in self.settings:
                row.attrSet("id", name[1])
                self.settings.append(name[1])

    def walk(self, tokens, site):
        """Links as the site has them. The text of a link holds no further links."""
        inside = False
        for token in tokens:
            if token.type in ("link_open", "link_close"):
                inside = token.type == "link_open"
            if token.type == "link_open":
                token.attrSet("href", site.target(self, token.attrGet("href")))
            elif token.type == "image":
                token.attrSet("src", site.target(self, token.attrGet("src")))
            elif token.type == "code_inline":
                token.meta = {"linked": inside}
            if token.type == "inline":
                self.walk(token.children, site)


def paragraph(text, page, site):
    """A paragraph of a header's comment: `code` in backticks, names of functions as links."""
    pieces = re.split(r"`([^`]+)`", text)
    return "".join(listing.inline(piece, page, site) if at % 2 else listing.linked(html.escape(piece, quote=False), page, site)
                   for at, piece in enumerate(pieces))

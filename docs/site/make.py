#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the documentation a site of plain files: the Markdown files of the project, and the API from the public headers.

usage: make.py SOURCE OUT
The last thing that it does is to look at every link that it has made. Exit code 1 if one leads nowhere, with a sentence for
each. Needs the package python3-markdown-it (tests/setup.sh docs)."""
import html
import json
import os
import re
import shutil
import sys

import api_index
import headers
import reference
from pages import Page

try:
    import markdown_it
except ImportError:
    sys.exit("make.py: there is no module markdown_it; on Debian: apt install python3-markdown-it, and use /usr/bin/python3")

API_INDEX = "docs/api-index.md"
HERE = os.path.dirname(os.path.abspath(__file__))


class Site:
    def __init__(self, source, out):
        self.source, self.out = source, out
        self.pages, self.parts, self.wrong = {}, [], []
        self.functions = reference.Functions(source, headers.read(source))
        self.read_contents()
        api = next(pages for title, pages in self.parts if title == "API")
        api += self.all_functions() + self.functions.pages()
        self.pages.update((page.path, page) for page in api)
        self.parts.append(("More", self.unlisted()))
        listed = len(self.pages)
        self.render_all()
        linked = sorted(list(self.pages.values())[listed:], key=lambda page: page.url)
        for title, start in (("Examples", "examples/"), ("Decisions", "design/"), ("Other pages", "")):
            self.parts.append((title, [page for page in linked if page.url.startswith(start) and not page.part]))
            for page in self.parts[-1][1]:
                page.part = title

    def read_contents(self):
        for line in open(HERE + "/contents.txt"):
            if line.startswith("#") or not line.strip():
                continue
            if not line.startswith(" "):
                self.parts.append((line.strip(), []))
                continue
            path, _, title = (word.strip() for word in line.partition(" : "))
            if path in self.pages:
                self.wrong.append("docs/site/contents.txt names %s twice" % path)
            elif os.path.exists(os.path.join(self.source, path)):
                self.parts[-1][1].append(self.page_of(path, title, self.parts[-1][0]))
            else:
                self.wrong.append("docs/site/contents.txt names %s, which does not exist" % path)

    def all_functions(self):
        """The page of all functions, which the preprocessor has to find: macros make most of them."""
        compiler = api_index.compiler()
        if not compiler:
            print("site: there is no C++ compiler here, so the page of all functions is left out")
            return []
        text, _ = api_index.index(self.source, compiler)
        return [Page(API_INDEX, text, part="API")]

    def unlisted(self):
        names = sorted(name for name in os.listdir(self.source + "/docs") if name.endswith(".md"))
        return [self.page_of("docs/" + name, "", "More") for name in names if "docs/" + name not in self.pages]

    def page_of(self, path, title="", part=""):
        if path not in self.pages:
            text = open(os.path.join(self.source, path)).read()
            self.pages[path] = Page(path, text, title, part)
        return self.pages[path]

    def render_all(self):
        """Pages that are linked to join the list while it is walked."""
        done = set()
        while len(done) < len(self.pages):
            for path in [path for path in self.pages if path not in done]:
                self.pages[path].render(self)
                done.add(path)

    def target(self, page, link):
        """Where a link of a Markdown file leads on the site."""
        path, mark, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or not path:
            return link
        path = os.path.normpath(os.path.join(os.path.dirname(page.path), path))
        header = re.sub(r"^include/gpushmem/", "", path)
        if header in self.functions.urls:
            return page.relative(self.functions.urls[header]) + mark + anchor
        if os.path.exists(os.path.join(self.source, path, "README.md")):
            path = os.path.join(path, "README.md")
        full = os.path.join(self.source, path)
        if os.path.isdir(full):
            return page.relative(self.listing(path))
        if not os.path.exists(full):
            self.wrong.append("%s links to %s, which does not exist" % (page.path, link))
            return link
        return page.relative(self.page_of(path).url if path.endswith(".md") else self.copied(path)) + mark + anchor

    def listing(self, folder):
        """A folder without a README: a page that names its Markdown files."""
        path = folder + "/README.md"
        if path not in self.pages:
            names = sorted(name for name in os.listdir(os.path.join(self.source, folder)) if name.endswith(".md"))
            titles = [(name, Page(folder + "/" + name, open(os.path.join(self.source, folder, name)).read()).title) for name in names]
            text = "# %s\n\n%s" % (folder, "\n".join("- [%s](%s)" % (title, name) for name, title in titles))
            self.pages[path] = Page(path, text, "All decisions" if folder.endswith("adr") else folder)
        return self.pages[path].url

    def copied(self, path):
        """Pictures as they are; all else as text that a browser shows."""
        url = "files/" + path + ("" if re.search(r"\.(png|svg|pgm)$", path) else ".txt")
        os.makedirs(os.path.dirname(os.path.join(self.out, url)), exist_ok=True)
        shutil.copyfile(os.path.join(self.source, path), os.path.join(self.out, url))
        return url

    def navigation(self, here):
        lines = []
        for title, pages in [part for part in self.parts if part[1]]:
            is_open = " open" if any(page is here for page in pages) or title in ("Install", "First program", "Concepts", "Recipes") else ""
            lines.append("<details%s><summary>%s</summary><ul>" % (is_open, title))
            for page in pages:
                mark = ' class="here" aria-current="page"' if page is here else ""
                lines.append('<li><a%s href="%s">%s</a></li>' % (mark, here.relative(page.url), html.escape(page.title)))
            lines.append("</ul></details>")
        return "\n".join(lines)

    def write(self):
        frame = open(HERE + "/frame.html").read()
        os.makedirs(self.out, exist_ok=True)
        for name in ("style.css", "search.js"):
            shutil.copyfile(os.path.join(HERE, name), os.path.join(self.out, name))
        order = [page for _, pages in self.parts for page in pages]
        for at, page in enumerate(order):
            values = {"title": html.escape(page.title), "root": page.relative("").rstrip("."), "body": page.html,
                      "navigation": self.navigation(page), "steps": steps(page, order, at), "source": html.escape(page.path)}
            target = os.path.join(self.out, page.url)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            open(target, "w").write(re.sub(r"\{\{(\w+)\}\}", lambda m: values[m[1]], frame))
        texts = [part for page in order if page.path != API_INDEX for part in page.texts()]
        open(os.path.join(self.out, "texts.js"), "w").write("const texts = %s;\n" % json.dumps(texts, indent=0))
        entries = [[title, url] for page in order for title, url in page.found()]
        open(os.path.join(self.out, "entries.js"), "w").write("const entries = %s;\n" % json.dumps(entries, indent=0))
        return len(order)

    def check(self):
        """Every link to a file and a place in it, as the finished pages have them."""
        texts = {}
        for folder, _, names in os.walk(self.out):
            for name in names:
                if name.endswith(".html"):
                    path = os.path.relpath(os.path.join(folder, name), self.out)
                    texts[path] = open(os.path.join(folder, name)).read()
        places = {path: set(re.findall(r'\bid="([^"]*)"', text)) for path, text in texts.items()}
        for path, text in texts.items():
            for link in set(re.findall(r'\b(?:href|src)="([^"]*)"', text)):
                self.check_link(path, html.unescape(link), places)

    def check_link(self, path, link, places):
        file, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            return
        target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
        if not os.path.isfile(os.path.join(self.out, target)):
            self.wrong.append("page %s links to %s, which is not on the site" % (path, link))
        elif anchor and anchor not in places.get(target, {anchor}):
            self.wrong.append("page %s links to %s, but there is no heading for #%s" % (path, link, anchor))


def steps(page, order, at):
    links = []
    if at > 0:
        links.append('<a rel="prev" href="%s">&larr; %s</a>' % (page.relative(order[at - 1].url), html.escape(order[at - 1].title)))
    if at + 1 < len(order):
        links.append('<a rel="next" href="%s">%s &rarr;</a>' % (page.relative(order[at + 1].url), html.escape(order[at + 1].title)))
    return "".join(links)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, out = (os.path.abspath(path) for path in sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    site = Site(source, out)
    count = site.write()
    site.check()
    print("\n".join(sorted(set(site.wrong))) or "site: ok: %d pages in %s" % (count, out))
    return bool(site.wrong)


if __name__ == "__main__":
    sys.exit(main())

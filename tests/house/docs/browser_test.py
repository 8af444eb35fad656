#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The documentation, and what the program draws, in a headless Chromium: nothing is wider than the window, links and pictures are
there, the search finds and leads somewhere, light and dark can be read, text in pictures lies inside them and not on other text.

usage: browser_test.py SOURCE WORK [--shots DIR] [--pictures] [COMMAND]
  SOURCE, WORK   the site is made of SOURCE, in WORK
  COMMAND        the program gpushmem, whose pictures are looked at, too
  --shots DIR    leaves a picture of each page there, to be looked at
  --pictures     looks at pictures only
77: there is no Chromium, or no python3-markdown-it."""
import glob
import importlib.util
import os
import pathlib
import subprocess
import sys
import urllib.parse

from browser import PROGRAM, SECONDS, Browser

WIDTHS = 400, 1280
ALLOWED = "file:", "data:", "about:"
failures = []

# Elements that stick out of the window, and out of no box of their own that scrolls.
TOO_WIDE = """(() => {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    const wide = [...document.querySelectorAll("main *, nav *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 &&
        !e.closest("pre, .wide"));
    return ["the page is " + document.documentElement.scrollWidth + " wide: " +
            wide.slice(0, 3).map((e) => e.tagName + " " + e.textContent.slice(0, 40)).join("; ")];
})()"""
NO_PICTURE = """[...document.images].filter((i) => !i.complete || !i.naturalWidth).map((i) => "no picture: " + i.src)"""
LINKS = """[...new Set([...document.querySelectorAll("a[href]")].map((a) => a.href))]"""
ANCHORS = """[...document.querySelectorAll("[id]")].map((e) => e.id)"""
# Text whose colour is too close to what it stands on (WCAG 2: 4.5 to 1).
TOO_PALE = """(() => {
    const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
    const light = (color) => { const [r, g, b] = numbers(color).slice(0, 3).map((v) => v / 255)
        .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const below = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        const n = numbers(c); if (n.length < 4 || n[3] > 0) return c; } return "rgb(255, 255, 255)"; };
    const pale = new Set();
    for (const e of document.querySelectorAll("body *")) {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length) continue;
        const a = light(getComputedStyle(e).color), b = light(below(e));
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) pale.add("text of contrast " + contrast.toFixed(1) + ": " + e.tagName + "." + e.className +
                                     " " + e.textContent.trim().slice(0, 30));
    }
    return [...pale].slice(0, 5);
})()"""
# Of an SVG: text outside the picture, and text on text. A letter's box is higher than the letter.
TEXT_OF_PICTURE = """(() => {
    const root = document.documentElement, all = root.getBoundingClientRect(), said = [];
    const texts = [...root.querySelectorAll("text")].filter((t) => t.textContent.trim());
    const boxes = texts.map((t) => t.getBoundingClientRect());
    const name = (i) => "'" + texts[i].textContent.trim().slice(0, 40) + "'";
    boxes.forEach((a, i) => {
        if (a.left < all.left - 1 || a.right > all.right + 1 || a.top < all.top - 1 || a.bottom > all.bottom + 1)
            said.push(name(i) + " is cut off at the edge");
        boxes.slice(i + 1).forEach((b, j) => {
            const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (x > 2 && y > 0.3 * Math.min(a.height, b.height)) said.push(name(i) + " lies on " + name(i + 1 + j));
        });
    });
    return said;
})()"""


def complain(where, sentences):
    failures.extend("%s: %s" % (where, sentence) for sentence in sentences)


class Tour:
    """All pages of the site, in one browser."""

    def __init__(self, browser, site, shots):
        self.browser, self.site, self.shots, self.links, self.anchors = browser, site, shots, {}, {}

    def shoot(self, name):
        if self.shots:
            self.browser.shoot("%s/%s.png" % (self.shots, name.replace("/", "_")))

    def open(self, page):
        self.browser.open(pathlib.Path(self.site, page).as_uri())

    def look(self, page):
        for width in WIDTHS:
            self.browser.size(width)
            for scheme in "light", "dark":
                self.browser.dark(scheme == "dark")
                where = "%s, %d wide, %s" % (page, width, scheme)
                if scheme == "light":
                    self.open(page)
                    complain(where, [] if self.browser.run("innerWidth") == width else ["the window has another width"])
                    complain(where, self.browser.run(TOO_WIDE) + self.browser.run(NO_PICTURE))
                if width == WIDTHS[-1]:
                    complain(where, self.browser.run(TOO_PALE))
                self.shoot("%s-%d-%s" % (page, width, scheme))
        url = pathlib.Path(self.site, page).as_uri()
        self.links[page], self.anchors[url] = self.browser.run(LINKS), set(self.browser.run(ANCHORS))
        complain(page, self.browser.take_complaints())

    def follow_links(self):
        for page, links in self.links.items():
            for link in links:
                url, _, anchor = link.partition("#")
                path = urllib.parse.unquote(urllib.parse.urlparse(url).path)
                if url.startswith("file:") and not os.path.exists(path):
                    complain(page, ["a link leads nowhere: " + link])
                elif anchor and url in self.anchors and urllib.parse.unquote(anchor) not in self.anchors[url]:
                    complain(page, ["a link leads to no part of its page: " + link])

    def search(self, page, words, wanted):
        self.browser.size(WIDTHS[-1])
        self.browser.dark(False)
        self.open(page)
        self.browser.type("#search", words)
        self.browser.until("typeof texts !== 'undefined' && document.querySelector('#results li')")
        found = self.browser.run("""[...document.querySelectorAll("#results a")].map((a) => [a.textContent, a.href])""")
        self.shoot("search-" + words)
        titles = [title for title, _ in found]
        if wanted not in titles[:3]:
            complain(page, ["a search for '%s' does not find %s first, but %s" % (words, wanted, titles[:3])])
            return
        self.browser.open(found[titles.index(wanted)][1])
        if not self.browser.run("document.querySelector(':target, h1') !== null"):
            complain(page, ["a search for '%s' leads to nothing" % words])

    def search_for_nothing(self, page):
        self.open(page)
        self.browser.type("#search", "zzzzzz")
        self.browser.until("typeof texts !== 'undefined'")
        if not self.browser.run("document.getElementById('results').textContent.trim()"):
            complain(page, ["a search that finds nothing says nothing"])


def look_at_picture(browser, path, shots):
    browser.size(1400)
    browser.dark(False)
    browser.open(pathlib.Path(path).as_uri())
    complain(os.path.basename(path), browser.run(TEXT_OF_PICTURE) + browser.take_complaints())
    if shots:
        browser.shoot("%s/%s.png" % (shots, os.path.basename(path)))


def draw(program, source, work):
    """The program's own pictures: of recorded machines, and of benchmarks' results."""
    pictures = []
    for command, name in drawings(program, source, work):
        path = "%s/%s.svg" % (work, name)
        done = subprocess.run([*command, path], capture_output=True, text=True, timeout=SECONDS)
        if done.returncode or not os.path.exists(path):
            failures.append("%s failed: %s" % (" ".join(command), done.stderr[-300:]))
        else:
            pictures.append(path)
    return pictures


def drawings(program, source, work):
    sys.path.insert(0, source + "/tests/launch/cli")
    from recorded import MACHINES
    for name, text in MACHINES.items():
        with open("%s/%s.xml" % (work, name), "w", encoding="utf-8") as file:
            file.write(text)
    machines = glob.glob(source + "/tests/unit/topology/*.xml") + ["%s/%s.xml" % (work, name) for name in MACHINES]
    for xml in machines:
        yield [program, "topo", "--xml", xml, "--svg"], "topo-" + os.path.basename(xml)[:-4]
    if os.path.exists(os.path.dirname(program) + "/gpushmem-perf"):
        rows = work + "/rows.json"
        subprocess.run([program, "perf", "-q", "put-lat", "put-bw", "get-bw", "amo", "barrier", "--issuer", "host",
                        "--max", "64K", "--seconds", "0.02", "--json", rows], stdout=subprocess.DEVNULL, timeout=SECONDS, check=True,
                       env={**os.environ, "GPUSHMEM_TRANSPORTS": "p2p", "GPUSHMEM_HEAP_KIND": "host"})
        yield [program, "perf", "-q", "--from", rows, "--plot"], "perf"
        yield [program, "perf", "-q", "--from", rows, "--compare", rows, "--plot"], "perf-compared"


def main():
    arguments = sys.argv[1:]
    shots = None
    if "--shots" in arguments:
        at = arguments.index("--shots")
        shots = arguments[at + 1]
        del arguments[at:at + 2]
        os.makedirs(shots, exist_ok=True)
    only_pictures = "--pictures" in arguments
    source, work, program = ([one for one in arguments if one != "--pictures"] + [None])[:3]
    if not PROGRAM or not importlib.util.find_spec("markdown_it"):
        print("skipped: no Chromium, or no python3-markdown-it (tests/setup.sh docs browser)")
        return 77
    os.makedirs(work, exist_ok=True)
    site = work + "/site"
    subprocess.run([sys.executable, "-B", source + "/docs/site/make.py", source, site], check=True, stdout=subprocess.DEVNULL)
    found = [] if only_pictures else glob.glob(site + "/**/*.html", recursive=True)
    pages = sorted(os.path.relpath(path, site) for path in found)
    pictures = glob.glob(source + "/docs/pictures/*.svg") + (draw(program, source, work) if program else [])
    browser = Browser()
    try:
        tour = Tour(browser, site, shots)
        for page in pages:
            tour.look(page)
        tour.follow_links()
        tour.search("index.html", "put_signal", "gpushmem_TYPE_put_signal")
        tour.search("design/observing.html", "gpushmem_heap_size", "GPUSHMEM_HEAP_SIZE")
        tour.search("api/gpushmem.h.html", "symmetric heap", "Concepts: The symmetric heap")
        tour.search("index.html", "element moved in one piece", "Memory model: Single operations")
        tour.search_for_nothing("index.html")
        for picture in pictures:
            look_at_picture(browser, picture, shots)
        complain("the site", ["it asks the network for " + url for url in browser.requests if not url.startswith(ALLOWED)])
    finally:
        browser.close()
    for sentence in failures:
        print(sentence)
    print("%d pages, %d pictures, %d failures" % (len(pages), len(pictures), len(failures)))
    return 1 if failures else 0


sys.exit(main())

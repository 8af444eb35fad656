# SPDX-License-Identifier: BSD-3-Clause
"""The API's pages: each header's comments and declarations, and where each name is explained."""
import html
import re

import listing
import comments
import pages


class Functions:
    def __init__(self, source, headers):
        self.headers, self.places, self.settings = headers, {}, settings(source)
        self.types = dict(re.findall(r"X\((\w+), ([\w ]+)\)", open(source + "/include/gpushmem/types.h").read()))
        self.types["longdouble"] = self.types["complexf"] = self.types["complexd"] = ""
        self.urls = {header.name: "api/%s.html" % header.name for header in headers}
        for header in headers:
            for number, entry in enumerate(header.entries):
                entry.anchor = "%s" % (entry.names[0] if entry.names else number)
                for name in entry.names + re.findall(r"\bGPUSHMEM_\w+(?= =)", "\n".join(entry.declarations)):
                    self.places.setdefault(name, "%s#%s" % (self.urls[header.name], entry.anchor))

    def url(self, name):
        """Where a name is explained: a function by its own name or its pattern, a constant, or a setting."""
        if name in self.settings and name not in self.places:
            return "settings.html#" + name
        for candidate in self.candidates(re.sub(r"^p(?=gpushmem)", "", name)):
            if candidate in self.places:
                return self.places[candidate]
        return None

    def candidates(self, name):
        yield name
        for one in (name, re.sub(r"_dev_ctx_", "_dev_", name)):
            yield one
            yield re.sub(r"_(%s)_" % "|".join(self.types), "_TYPE_", one, count=1)
            yield re.sub(r"(put|get)(8|16|32|64|128)\b", r"\1BITS", re.sub(r"(put|get)(8|16|32|64|128)_", r"\1BITS_", one))
            # without a type, as C11 and C++ have it
            yield re.sub(r"gpushmem_(ctx_|dev_ctx_|dev_)?", r"gpushmem_\1TYPE_", one, count=1)

    def pages(self):
        return [ReferencePage(header, self) for header in self.headers]


def settings(source):
    return set(re.findall(r"`(GPUSHMEM_\w+)`", open(source + "/docs/settings.md").read()))


class ReferencePage(pages.Page):
    def __init__(self, header, functions):
        super().__init__(header.path, "", header.title, "API")
        self.header, self.url = header, functions.urls[header.name]
        self.functions = functions

    def found(self):
        return [(self.title + " (gpushmem/%s)" % self.header.name, self.url)] + \
               [(name, self.url + "#" + entry.anchor) for entry in self.header.entries for name in entry.names]

    def render(self, site):
        include = "<p><code>#include &lt;gpushmem/%s&gt;</code></p>" % self.header.name
        lines = ["<h1>%s</h1>" % html.escape(self.title), include, parts(comments.parse(self.header.intro), self, site)]
        section = None
        for entry in self.header.entries:
            if entry.section and entry.section != section:
                section = entry.section
                lines.append('<h2 id="%s">%s</h2>' % (pages.slug(section), html.escape(section.capitalize())))
            lines.append(self.entry(entry, site))
        self.html = "\n".join(lines)

    def entry(self, entry, site):
        declarations = "\n".join(listing.coloured(folded(one), listing.C_TOKEN, self, site) for one in entry.declarations)
        return '<section class="entry" id="%s"><pre class="declarations"><code>%s</code></pre>%s</section>' % (
            entry.anchor, declarations, parts(entry.parts, self, site))


def folded(declaration, width=92):
    """A prototype on lines that fit: parameters go on under the first one."""
    if len(declaration) <= width or "\n" in declaration or "(" not in declaration:
        return declaration
    begin = declaration.index("(") + 1
    margin = min(begin, 48)
    lines = [declaration[:begin]]
    for parameter in re.findall(r"[^,]+,?", declaration[begin:]):
        parameter = parameter.strip()
        if len(lines[-1]) + len(parameter) + 1 > width and lines[-1].strip() and not lines[-1].endswith("("):
            lines.append(" " * margin + parameter)
        else:
            lines[-1] += ("" if lines[-1].endswith("(") else " ") + parameter
    return "\n".join(lines)


def parts(found, page, site):
    return "\n".join({"text": text, "terms": terms, "code": lines_of_code}[kind](value, page, site) for kind, value in found)


def text(words, page, site):
    return "<p>%s</p>" % pages.paragraph(words, page, site)


def terms(rows, page, site):
    return '<dl>%s</dl>' % "".join("<dt>%s</dt><dd>%s</dd>" % (
        listing.linked(html.escape(term.replace("`", ""), quote=False), page, site), parts(body, page, site)) for term, body in rows)


def lines_of_code(lines, page, site):
    return listing.block("\n".join(lines) + "\n", "c", page, site)

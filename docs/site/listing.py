# SPDX-License-Identifier: BSD-3-Clause
"""Code on pages: coloured, and with the library's names as links to what the headers say about them."""
import html
import re

WORDS = ("auto bool break case char const continue do double else enum extern float for if inline int long return short signed "
         "sizeof static struct switch template typedef union unsigned void volatile while uint64_t uint32_t uint8_t int64_t "
         "int32_t size_t ptrdiff_t __global__ __device__ __shared__ NULL nullptr").split()
C_TOKEN = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<directive>^[ \t]*#[ \t]*\w+)'
                     r"|(?P<word>\b(?:%s)\b)|(?P<name>\bp?(?:gpushmem|GPUSHMEM)_\w+)" % "|".join(WORDS), re.M | re.S)
SHELL_TOKEN = re.compile(r"(?P<comment>(?:^|(?<=\s{2}))#[^\n]*|(?<=\s)#\s[^\n]*)|(?P<name>\bGPUSHMEM_\w+)", re.M)
NAME = re.compile(r"\bp?(?:gpushmem|GPUSHMEM)_\w+")


def block(text, language, page, site):
    is_c = language in ("c", "cpp", "c++", "cuda") or re.search(r"[;{]\s*(//.*)?$", text, re.M) is not None
    return "<pre><code>%s</code></pre>\n" % coloured(text, C_TOKEN if is_c else SHELL_TOKEN, page, site)


def coloured(text, tokens, page, site):
    out, at = [], 0
    for match in tokens.finditer(text):
        out.append(html.escape(text[at:match.start()], quote=False))
        at = match.end()
        if match.lastgroup == "name":
            out.append(link(match[0], page, site))
        else:
            out.append('<span class="%s">%s</span>' % (match.lastgroup, html.escape(match[0], quote=False)))
    return "".join(out) + html.escape(text[at:], quote=False)


def link(name, page, site):
    url = site.functions.url(name)
    return '<a href="%s">%s</a>' % (page.relative(url), name) if url else name


def linked(escaped, page, site):
    return NAME.sub(lambda match: link(match[0], page, site), escaped)


def inline(text, page, site):
    return "<code>%s</code>" % linked(html.escape(text, quote=False), page, site)

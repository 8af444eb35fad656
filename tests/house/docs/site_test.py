#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The documentation as a site: it can be made, all links lead somewhere, every function has its place in the reference, new files
of docs/ are taken up, and what is wrong is said. usage: site_test.py SOURCE WORK. 77: without python3-markdown-it."""
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

SOURCE, WORK = sys.argv[1:3]
SITE, BROKEN = WORK + "/site", WORK + "/broken"
# What the headers' own code calls, and no program.
INTERNAL = {"gpushmem_block_holds", "gpushmem_block_missed", "gpushmem_call_failed", "gpushmem_cuda_runtime_add",
            "gpushmem_cuda_runtime_remove", "gpushmem_direct_counted", "gpushmem_faults_watch",
            "gpushmem_kernel_begins", "gpushmem_kernel_ends", "gpushmem_kernel_thread_start", "gpushmem_kernels_load",
            "gpushmem_launch_compare", "gpushmem_launch_failed", "gpushmem_launch_refused", "gpushmem_launch_waiting",
            "gpushmem_outside_kernel", "gpushmem_proxy_help", "gpushmem_proxy_wake", "gpushmem_stream_serve",
            "gpushmem_sync_missed", "gpushmem_warp_missed"}
failures = []


def expect(condition, sentence):
    if not condition:
        failures.append(sentence)


def make(source, out):
    command = [sys.executable, SOURCE + "/docs/site/make.py", source, out]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def the_site_is_whole():
    status, said = make(SOURCE, SITE)
    expect(status == 0, "the site cannot be made:\n" + said)
    for name in os.listdir(SOURCE + "/docs"):
        if name.endswith(".md"):
            expect(os.path.exists(SITE + "/" + name[:-3] + ".html"), "docs/%s is no page of the site" % name)
    texts = json.loads(read(SITE + "/texts.js").split("=", 1)[1].rstrip(";\n"))
    expect(any(title == "Memory model: Single operations" and "in one piece" in text for title, _, text in texts),
           "the search does not know the text of the pages")
    expect(not any("<" in text and "</" in text for _, _, text in texts), "the search's texts have tags")


def every_function_has_its_place():
    sys.path.insert(0, SOURCE + "/docs/site")
    import headers
    import reference
    functions = reference.Functions(SOURCE, headers.read(SOURCE))
    import api_index
    patterns = set(re.findall(r"\b(?:gpushmem|GPUSHMEM)_\w+(?=\()", api_index.index(SOURCE, api_index.compiler())[0]))
    lost = sorted(name for name in patterns - INTERNAL if not functions.url(name))
    expect(len(patterns) > 500, "only %d functions were looked for: does this test still see them?" % len(patterns))
    for name in ("GPUSHMEM_LAUNCH", "gpushmem_launch_wait", "gpushmem_stream_create", "gpushmem_init_mpi"):
        expect(name in patterns, "the page of all functions lacks " + name)
    expect(not lost, "the reference does not explain: " + " ".join(lost))
    for name, page in (("gpushmem_long_put", "gpushmem.h"), ("gpushmem_ctx_put64_nbi", "gpushmem.h"),
                       ("gpushmem_put", "gpushmem.h"), ("gpushmem_float_sum_reduce", "coll.h"), ("GPUSHMEM_ERR_PE", "types.h"),
                       ("gpushmem_launch_wait", "device/launch.cuh"),
                       ("gpushmem_dev_ctx_int_p", "device.cuh"), ("GPUSHMEM_LAUNCH", "device/launch.cuh")):
        url = functions.url(name) or ""
        expect(("/%s.html#" % page) in "/" + url, "%s leads to '%s', not to %s" % (name, url, page))
    expect(functions.url("gpushmem_no_such_function") is None, "a name that does not exist leads somewhere")


def comments_become_terms_and_text():
    import comments
    parts = comments.parse(["Does it.", "  GPUSHMEM_ERR_A    one;", "                    and more", "  GPUSHMEM_ERR_BB   two",
                            "", "    code();"])
    terms = [("GPUSHMEM_ERR_A", [("text", "one; and more")]), ("GPUSHMEM_ERR_BB", [("text", "two")])]
    want = [("text", "Does it."), ("terms", terms), ("code", ["code();"])]
    expect(parts == want, "comments.parse gave %r" % parts)


def what_is_wrong_is_said():
    os.makedirs(BROKEN)
    for name in os.listdir(SOURCE):
        if not name.startswith(".") and name not in ("build", "docs"):
            os.symlink(os.path.join(SOURCE, name), os.path.join(BROKEN, name))
    shutil.copytree(SOURCE + "/docs", BROKEN + "/docs", ignore=shutil.ignore_patterns("__pycache__"))
    os.remove(BROKEN + "/docs/emulation.md")
    with open(BROKEN + "/docs/new.md", "w", encoding="utf-8") as file:
        file.write("# A new page\n\n[lost](nowhere.md) [far](tutorial.md#no-such-heading) [here](#neither)\n")
    status, said = make(BROKEN, WORK + "/broken-site")
    expect(status == 1, "a site with broken links was made with status %d" % status)
    for sentence in ("docs/new.md links to nowhere.md, which does not exist",
                     "page new.html links to tutorial.html#no-such-heading, but there is no heading for #no-such-heading",
                     "page new.html links to #neither, but there is no heading for #neither",
                     "docs/site/contents.txt names docs/emulation.md, which does not exist"):
        expect(sentence in said, "not said: %s\nbut: %s" % (sentence, said))
    expect('href="new.html">A new page<' in read(WORK + "/broken-site/tutorial.html"), "a new file of docs/ is not in the navigation")


def the_pictures_are_those_drawn():
    os.makedirs(WORK + "/pictures")
    subprocess.run([sys.executable, SOURCE + "/docs/pictures/draw.py", WORK + "/pictures"], check=True)
    for name in os.listdir(WORK + "/pictures"):
        drawn = read(WORK + "/pictures/" + name)
        xml.etree.ElementTree.fromstring(drawn)
        expect(drawn == read(SOURCE + "/docs/pictures/" + name), "docs/pictures/%s is not what draw.py draws; run it" % name)


def main():
    sys.dont_write_bytecode = True
    try:
        import markdown_it  # noqa: F401
    except ImportError:
        print("site: skipped: no python3-markdown-it (tests/setup.sh docs)")
        return 77
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    the_site_is_whole()
    every_function_has_its_place()
    comments_become_terms_and_text()
    what_is_wrong_is_said()
    the_pictures_are_those_drawn()
    print("\n".join(failures) or "site: ok")
    return bool(failures)


sys.exit(main())

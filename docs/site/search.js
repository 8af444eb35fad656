// SPDX-License-Identifier: BSD-3-Clause
// Finds pages, headings and functions by the words typed; names that begin with them come first.
const input = document.getElementById("search");
const results = document.getElementById("results");
const parts = document.getElementById("parts");
const most = 40;

function rank(title, words) {
    const text = title.toLowerCase();
    if (!words.every((word) => text.includes(word)))
        return 0;
    return text.replace(/^gpushmem_(dev_)?(ctx_)?(type_)?/, "").startsWith(words[0]) ? 2 : 1;
}

function addRow(content) {
    const row = document.createElement("li");
    row.append(content);
    results.append(row);
}

function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    results.replaceChildren();
    results.hidden = words.length === 0;
    parts.hidden = words.length > 0;
    if (words.length === 0)
        return;
    const found = entries
        .map(([title, url]) => [rank(title, words), title, url])
        .filter(([order]) => order > 0)
        .sort((a, b) => b[0] - a[0] || a[1].length - b[1].length);
    for (const [, title, url] of found.slice(0, most)) {
        const link = document.createElement("a");
        link.href = document.body.dataset.root + url;
        link.textContent = title;
        addRow(link);
    }
    if (found.length === 0)
        addRow("No page, heading or name has all of these words.");
    if (found.length > most)
        addRow(`${found.length - most} more: add a word.`);
}

input.addEventListener("input", show);

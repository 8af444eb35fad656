// SPDX-License-Identifier: BSD-3-Clause
// Finds pages, headings and functions by the words typed; names that begin with them come first. Below them stand places whose
// text has all of the words. The texts are loaded when somebody searches for the first time.
const input = document.getElementById("search");
const results = document.getElementById("results");
const parts = document.getElementById("parts");
const root = document.body.dataset.root;
const most = 40;
let loading = null;

function loadTexts() {
    loading = loading || document.head.append(Object.assign(document.createElement("script"),
        { src: root + "texts.js", onload: show })) || true;
}

function rank(title, words) {
    const text = title.toLowerCase();
    if (!words.every((word) => text.includes(word)))
        return 0;
    return text.replace(/^gpushmem_(dev_)?(ctx_)?(type_)?/, "").startsWith(words[0]) ? 2 : 1;
}

function byName(words) {
    return entries
        .map(([title, url]) => [rank(title, words), title, url])
        .filter(([order]) => order > 0)
        .sort((a, b) => b[0] - a[0] || a[1].length - b[1].length)
        .map(([, title, url]) => ({ title, url }));
}

// Places that say a rare word often for their length come first.
function byText(words, known) {
    if (typeof texts === "undefined" || words.join("").length < 3)
        return [];
    const places = texts.map(([title, url, text]) => ({ title, url, text, said: (title + " " + text).toLowerCase() }));
    const rarity = words.map((word) => Math.log(1 + places.length / (1 + places.filter(({ said }) => said.includes(word)).length)));
    return places
        .filter(({ url, said }) => !known.has(url) && words.every((word) => said.includes(word)))
        .map((place) => ({ ...place, weight: words.reduce((sum, word, at) =>
            sum + rarity[at] ** 2 * Math.sqrt(place.said.split(word).length - 1), 0) / (1000 + place.said.length) }))
        .sort((a, b) => b.weight - a.weight);
}

// The words around the longest one, which is marked.
function excerpt(text, words) {
    const row = document.createElement("p");
    const word = words.filter((one) => text.toLowerCase().includes(one)).sort((a, b) => b.length - a.length)[0];
    if (!word)
        return row;
    const at = text.toLowerCase().indexOf(word);
    const from = Math.max(0, text.lastIndexOf(" ", Math.max(0, at - 40)) + 1);
    const mark = Object.assign(document.createElement("mark"), { textContent: text.slice(at, at + word.length) });
    row.append((from ? "... " : "") + text.slice(from, at), mark, text.slice(at + word.length, at + 90) + " ...");
    return row;
}

function addRow(...content) {
    const row = document.createElement("li");
    row.append(...content);
    results.append(row);
}

function show() {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    results.replaceChildren();
    results.hidden = words.length === 0;
    parts.hidden = words.length > 0;
    if (words.length === 0)
        return;
    loadTexts();
    const names = byName(words);
    const found = names.slice(0, most / 2).concat(byText(words, new Set(names.map(({ url }) => url))));
    for (const { title, url, text } of found.slice(0, most)) {
        const link = Object.assign(document.createElement("a"), { href: root + url, textContent: title });
        addRow(link, ...(text ? [excerpt(text, words)] : []));
    }
    const more = names.length - Math.min(names.length, most / 2) + Math.max(0, found.length - most);
    if (found.length === 0)
        addRow("Nothing has all of these words.");
    if (more > 0)
        addRow(`${more} more: add a word.`);
}

input.addEventListener("input", show);

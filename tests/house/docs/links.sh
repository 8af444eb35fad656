#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# links.sh SOURCE: every relative link in a Markdown file, and every docs/ file that a source names, exists.
set -u
cd "$1" || exit 1
failed=0

files() {
    find . -path ./build -prune -o -path ./.git -prune -o -type f "$@" -print
}

while IFS= read -r file; do
    while IFS= read -r link; do
        target=$(dirname "$file")/${link%%#*}
        [ -e "$target" ] || { echo "$file links to $link, which does not exist" && failed=1; }
    done < <(grep -o '](\([^)]*\))' "$file" | sed 's/^](//; s/)$//' | grep -v '^[a-z]*:\|^#')
done < <(files -name '*.md')

while IFS=: read -r file name; do
    [ -e "$name" ] || { echo "$file names $name, which does not exist" && failed=1; }
done < <(files \( -name '*.[ch]' -o -name '*.cuh' -o -name '*.hpp' -o -name '*.cu' -o -name '*.sh' -o -name '*.md' \) |
    xargs grep -Ho 'docs/[a-z0-9/-]*\.md' | sort -u)
exit $failed

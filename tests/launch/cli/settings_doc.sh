#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# settings_doc.sh GPUSHMEM SOURCE: docs/settings.md is what `gpushmem info --settings-markdown` prints.
diff -u "$2/docs/settings.md" <("$1" info --settings-markdown) || {
    echo "docs/settings.md is not current; run: gpushmem info --settings-markdown > docs/settings.md"
    exit 1
}

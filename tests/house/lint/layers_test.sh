#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# layers_test.sh CC: layers.py accepts a small house in order, and refuses each kind of disorder in it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cc=$1
house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT

build_house() {
    rm -rf "${house:?}"/*
    mkdir -p "$house"/{docs,include/gpushmem,device,runtime/low,runtime/high,transports/wire,build}
    cat >"$house/docs/architecture.md" <<'EOF'
## Rooms

| room | folder | uses | holds |
|---|---|---|---|
| public | `include/gpushmem` | | declarations |
| device | `device` | public | kernels |
| low | `runtime/low` | public | what everybody uses |
| high | `runtime/high` | all above | the rest |
| wire | `transports/wire` | public, low | a transport |

## Another section
EOF
    echo 'int low(void);' >"$house/runtime/low/low.h"
    printf '#include "low/low.h"\nint low(void) { return 1; }\n' >"$house/runtime/low/low.c"
    echo 'int high(void);' >"$house/runtime/high/high.h"
    printf '#include "low/low.h"\nint high(void) { return low(); }\n' >"$house/runtime/high/high.c"
    printf '#include "low/low.h"\nint wire(void) { return low(); }\n' >"$house/transports/wire/wire.c"
}

compile() {
    local file separator=
    (
        cd "$house/build"
        echo '['
        while read -r file; do
            "$cc" -c -I../runtime -o "$(basename "$file").o" "$file"
            printf '%s{"directory": "%s", "file": "%s", "command": "cc -o %s -c %s"}\n' \
                "$separator" "$PWD" "$file" "$(basename "$file").o" "$file"
            separator=,
        done < <(find "$house" -name '*.c')
        echo ']'
    ) >"$house/compile_commands.json"
    mv "$house/compile_commands.json" "$house/build/"
}

# expect STATUS TEXT
expect() {
    local status=0 said
    compile
    said=$("$here/layers.py" --build "$house/build" "$house" 2>&1) || status=$?
    if [ "$status" != "$1" ] || [[ $said != *"$2"* ]]; then
        echo "wanted status $1 and '$2', got $status and '$said'" >&2
        exit 1
    fi
}

build_house
expect 0 ""

build_house
echo '#include "high/high.h"' >>"$house/runtime/low/low.h"
expect 1 "runtime/low/low.h (low) includes it: runtime/high/high.h (high)"

build_house
printf 'int high(void);\nint climb(void) { return high(); }\n' >>"$house/runtime/low/low.c"
expect 1 "runtime/low/low.c (low) uses high: runtime/high/high.c (high)"

build_house
printf '#include "high/high.h"\n' >>"$house/transports/wire/wire.c"
expect 1 "transports/wire/wire.c (wire) includes it"

build_house
printf 'int second(void);\nint again(void) { return second(); }\n' >>"$house/runtime/high/high.c"
printf '#include "high/high.h"\nint second(void) { return high(); }\n' >"$house/runtime/high/second.c"
expect 1 "use each other in a circle: runtime/high/high runtime/high/second"

build_house
printf 'int second(void);\nint again(void) { return second(); }\n' >>"$house/transports/wire/wire.c"
printf 'int wire(void);\nint second(void) { return wire(); }\n' >"$house/transports/wire/second.c"
expect 1 "use each other in a circle: transports/wire/second transports/wire/wire"

# a room within another one's folder
build_house
mkdir "$house/transports/wire/cellar"
sed -i '/^| wire/i| cellar | `transports/wire/cellar` | public | below |' "$house/docs/architecture.md"
printf 'int wire(void);\nint cellar(void) { return wire(); }\n' >"$house/transports/wire/cellar/cellar.c"
expect 1 "transports/wire/cellar/cellar.c (cellar) uses wire: transports/wire/wire.c (wire)"

build_house
mkdir "$house/runtime/shed"
touch "$house/runtime/shed/tool.c"
expect 1 "runtime/shed/tool.c: no room"

build_house
sed -i 's/public, low/public, lwo/' "$house/docs/architecture.md"
expect 2 "room wire uses lwo, which is not a room above it"

build_house
sed -i 's/## Rooms/## Room/' "$house/docs/architecture.md"
expect 2 "has no table"

build_house
echo 'extern struct low gpsh_low_state;' >>"$house/runtime/low/low.h"
printf '#include "low/low.h"\nint high(void) { return sizeof &gpsh_low_state == 1; }\n' >"$house/runtime/high/high.c"
expect 1 'runtime/high/high.c: uses gpsh_low_state, which belongs to runtime/low'

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh PYTHON SOURCE LIBRARY VENV: builds the wheel offline, with the library in it, and installs it into a virtual
# environment, which the other tests use.
set -euo pipefail
python=$1 source=$2 library=$3 venv=$4
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1
unset PYTHONPATH
# A pip of the machine's own saves the seconds that a new one in the environment takes.
pip=("$venv/bin/python" -m pip) without=()
if "$python" -m pip --python "$python" --version >/dev/null 2>&1; then
    pip=("$python" -m pip --python "$venv/bin/python") without=(--without-pip)
fi
"$python" -m venv --system-site-packages --clear "${without[@]}" "$venv" 2>"$venv.log" || {
    echo "no virtual environments with $python (Debian: python3-venv): $(tail -n 1 "$venv.log")"
    exit 77
}
"${pip[@]}" wheel -q --no-build-isolation --no-deps -w "$venv/wheels" \
    --config-settings "library=$library" --config-settings nvshmem=yes "$source/runtime/python"
"${pip[@]}" install -q --no-deps --force-reinstall --no-compile "$venv"/wheels/gpushmem-*.whl
cd /
"$venv/bin/python" - "$venv" <<'END'
import os
import sys
import gpushmem
from gpushmem import _library
where = os.path.realpath(gpushmem.__file__)
assert where.startswith(os.path.realpath(sys.argv[1])), where
assert gpushmem.version() == gpushmem.__version__, (gpushmem.version(), gpushmem.__version__)
assert _library.lib._handle._name == os.path.join(os.path.dirname(where), "lib", _library.NAME), _library.lib._handle._name
assert not gpushmem.initialized()
END
# settings that do not exist, and a library that does not: one sentence each
cd "$source/runtime/python"
for setting in library=/nowhere/libgpushmem.so nvshmem=perhaps libraries=x; do
    sentence=$("$venv/bin/python" -B -c 'import sys, wheel_backend
name, value = sys.argv[1].split("=")
wheel_backend.build_wheel("/nowhere", {name: value})' "$setting" 2>&1) && echo "$setting was accepted" && exit 1
    grep -q "^gpushmem: .*${setting%%=*}" <<<"$sentence" || { echo "$setting: $sentence" && exit 1; }
done
echo "install: ok"

#!/usr/bin/env bash
# Prepares Gradescope's container once: Python 3.11 or newer, what tpucc needs where every user can read it, and tpucc where only root can.
set -euo pipefail
root="${AUTOGRADER_ROOT:-/autograder}"
environment="${TPUCC_ENVIRONMENT:-/opt/tpucc}"

find_python() {
    for name in python3.14 python3.13 python3.12 python3.11 python3; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    return 1
}

if ! python="$(find_python)"; then
    apt-get update -qq
    apt-get install -y -qq python3 python3-venv || true
    python="$(find_python)" || apt-get install -y -qq python3.11 python3.11-venv
    python="$(find_python)" || { echo "no Python 3.11 or newer: choose a newer base image" >&2; exit 1; }
fi
command -v bwrap >/dev/null || apt-get install -y -qq bubblewrap || true # file modes keep submissions out where it is missing

if [ ! -x "$environment/bin/python" ]; then
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet -r "$root/source/requirements.txt"
fi
rm -rf "$root/grader"
mkdir -p "$root/grader"
cp -rp "$root/source/tpucc" "$root/source/lab.json" "$root/grader/"
"$environment/bin/python" -m compileall -q "$root/grader/tpucc" || true
chmod -R go-rwx "$root/grader" "$root/source"

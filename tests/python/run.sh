#!/bin/sh
# tests/python/run.sh PYTHON BUILD-FOLDER PROGRAM: installs the package into a new environment, as its documentation says,
# and tries it there. Status 77: it cannot be tried here.
set -eu
python=$1 build=$2 program=$3
source=$(cd "$(dirname "$0")/../.." && pwd)
skip() {
  echo "skipped: $1"
  exit 77
}

case $python in /*) ;; *) skip "there is no pybind11 (pybind11-dev, python3-dev), or the build has sanitizers" ;; esac
"$python" -c 'import pytest' 2>/dev/null || skip "there is no pytest (python3-pytest)"
folder=$build/tests/python
rm -rf "$folder"
"$python" -m venv --system-site-packages "$folder" >/dev/null 2>&1 || skip "there are no virtual environments (python3-venv)"
"$folder/bin/pip" install --quiet --disable-pip-version-check --no-index --no-build-isolation \
  --config-settings "build-folder=$build" "$source/reports/python"
cd "$folder" # so that nothing but what was installed is found
unset FORETRAIN_SCENARIOS
FORETRAIN_PROGRAM=$program MPLBACKEND=Agg PYTHONDONTWRITEBYTECODE=1 \
  exec "$folder/bin/python" -m pytest -q -p no:cacheprovider "$source/tests/python"

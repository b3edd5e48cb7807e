#!/bin/sh
# tests/python/run.sh PYTHON BUILD-FOLDER PROGRAM: makes a wheel of the package, as its documentation says, and tries it in a
# new environment, and whether it needs none but its own files in an empty one. Status 77: it cannot be tried here.
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
pip="$folder/bin/pip --quiet --disable-pip-version-check"
$pip wheel --no-index --no-build-isolation --config-settings "build-folder=$build" --wheel-dir "$folder/wheel" \
  "$source/reports/python"
$pip install --no-index "$folder"/wheel/foretrain-*.whl
cd "$folder" # so that nothing but what was installed is found
unset FORETRAIN_SCENARIOS PYTHONPATH

# A collective that the simulator steps through: its library is found. Pandas is not there.
"$python" -m venv empty
empty/bin/pip install --quiet --disable-pip-version-check --no-index wheel/foretrain-*.whl
empty/bin/python -c '
import foretrain, pathlib, sys
own = pathlib.Path(foretrain.__file__).parent
assert own.is_relative_to(sys.prefix), own
assert abs(foretrain.predict("sync-ring-4", "steps").time_s - 0.015) < 1e-4
assert (own / "libforetrain_simgrid.so").exists() and (own / "libforetrain_http.so").exists()
try:
    foretrain.sweep("sync-ring-4", {})
except foretrain.MissingPackageError as error:
    assert error.name == "pandas"
else:
    raise AssertionError("an empty environment has pandas")
'

FORETRAIN_PROGRAM=$program MPLBACKEND=Agg PYTHONDONTWRITEBYTECODE=1 \
  exec "$folder/bin/python" -m pytest -q -p no:cacheprovider "$source/tests/python"

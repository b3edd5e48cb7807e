"""The package's build back end (PEP 517): CMake builds the module from the whole source tree, and what it installs for the
component `python` becomes the wheel.

Config setting `build-folder`: a folder of CMake that is there already, and stays; else `build` of the source tree is made."""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]


def _run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, cwd=SOURCE)


def _version() -> str:
    found = re.search(r"project\(foretrain VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())
    assert found is not None
    return found[1]


def _metadata() -> str:
    return "\n".join(
        [
            "Metadata-Version: 2.1",
            "Name: foretrain",
            f"Version: {_version()}",
            "Summary: How long a training step takes, and why",
            "License: Apache-2.0",
            "Requires-Python: >=3.9",
            "Provides-Extra: frames",
            "Requires-Dist: pandas; extra == 'frames'",
            "Provides-Extra: plots",
            "Requires-Dist: matplotlib; extra == 'plots'",
            "Description-Content-Type: text/markdown",
            "",
            (SOURCE / "reports/docs/python.md").read_text(),
        ]
    )


def _tag() -> str:
    interpreter = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{interpreter}-{interpreter}-{platform}"


def _build(settings: dict[str, str] | None) -> pathlib.Path:
    stated = (settings or {}).get("build-folder")
    folder = pathlib.Path(stated) if stated else SOURCE / "build"
    if not stated:
        _run("cmake", "--preset", "release", "-DFORETRAIN_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}")
    _run("cmake", "--build", folder, "--target", "foretrain_python", "--parallel", os.cpu_count() or 1)
    return folder


def _write_wheel(path: pathlib.Path, files: dict[str, bytes]) -> None:
    record = []
    record_name = f"foretrain-{_version()}.dist-info/RECORD"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")
        wheel.writestr(record_name, "\n".join([*record, f"{record_name},,", ""]))


def _information() -> dict[str, bytes]:
    """Metadata of a wheel, by file."""
    wheel = f"Wheel-Version: 1.0\nGenerator: foretrain_build\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    folder = f"foretrain-{_version()}.dist-info"
    return {
        f"{folder}/METADATA": _metadata().encode(),
        f"{folder}/LICENSE": (SOURCE / "LICENSE").read_bytes(),
        f"{folder}/WHEEL": wheel.encode(),
    }


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: dict[str, str] | None = None) -> str:
    for name, content in _information().items():
        path = pathlib.Path(metadata_directory) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    return path.parent.name


def build_wheel(
    wheel_directory: str, config_settings: dict[str, str] | None = None, metadata_directory: str | None = None
) -> str:
    folder = _build(config_settings)
    with tempfile.TemporaryDirectory() as stage:
        _run("cmake", "--install", folder, "--prefix", stage, "--component", "python", "--strip")
        staged = sorted(path for path in pathlib.Path(stage).rglob("*") if path.is_file())
        files = {str(path.relative_to(stage)): path.read_bytes() for path in staged}
    if not any(name.startswith("foretrain/_foretrain.") for name in files):
        raise SystemExit(f"{folder} makes no Python module; it was configured without pybind11 or with sanitizers")
    files |= _information()
    name = f"foretrain-{_version()}-{_tag()}.whl"
    _write_wheel(pathlib.Path(wheel_directory) / name, files)
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, str] | None = None) -> str:
    raise SystemExit("the package is built from the whole source tree; install it from a checkout")

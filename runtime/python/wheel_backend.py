# SPDX-License-Identifier: BSD-3-Clause
"""Builds the wheel: the packages as they are. PEP 517, with nothing but Python's standard library, so that it works offline.

Settings, as `pip wheel . --config-settings NAME=VALUE`:
    library  a libgpushmem.so to carry along; without it the wheel is for any machine, and finds the library when it is imported
    nvshmem  yes: also a package `nvshmem`, which frameworks take for NVSHMEM's Python bindings (docs/python.md)"""
import base64
import hashlib
import os
import re
import sysconfig
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = "libgpushmem.so.0"
SETTINGS = ("library", "nvshmem")


def _version():
    with open(os.path.join(HERE, "gpushmem", "__init__.py")) as source:
        return re.search(r'^__version__ = "(.*)"', source.read(), re.M)[1]


def _metadata():
    with open(os.path.join(HERE, "README.md")) as readme:
        return ("Metadata-Version: 2.1\nName: gpushmem\nVersion: %s\nSummary: One-sided communication between the processing "
                "elements of a parallel job\nLicense: BSD-3-Clause\nRequires-Python: >=3.9\nProvides-Extra: numpy\n"
                "Requires-Dist: numpy; extra == 'numpy'\nDescription-Content-Type: text/markdown\n\n%s"
                % (_version(), readme.read()))


def _settings(given):
    given = dict(given or {})
    unknown = sorted(set(given) - set(SETTINGS))
    if unknown:
        raise SystemExit("gpushmem: no setting %s; there are %s" % (", ".join(unknown), ", ".join(SETTINGS)))
    library = given.get("library")
    if library and not os.path.isfile(library):
        raise SystemExit("gpushmem: library=%s: there is no such file" % library)
    if given.get("nvshmem", "no") not in ("yes", "no"):
        raise SystemExit("gpushmem: nvshmem=%s: yes or no" % given["nvshmem"])
    return library, given.get("nvshmem") == "yes"


def _sources(nvshmem):
    for package in ("gpushmem", "nvshmem") if nvshmem else ("gpushmem",):
        for folder, folders, names in os.walk(os.path.join(HERE, package)):
            folders[:] = sorted(set(folders) - {"__pycache__", "lib"})
            for name in sorted(names):
                if name.endswith((".py", ".typed")):
                    path = os.path.join(folder, name)
                    yield os.path.relpath(path, HERE), path


class _Wheel:
    """A zip file, and the list of what is in it."""

    def __init__(self, path):
        self.zip, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), []

    def add(self, name, data):
        data = data.encode() if isinstance(data, str) else data
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)) # the same bytes each time
        info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d\n" % (name, digest, len(data)))

    def add_file(self, name, path):
        with open(path, "rb") as source:
            self.add(name, source.read())

    def close(self, info):
        self.add(info + "/METADATA", _metadata())
        self.zip.writestr(info + "/RECORD", "".join(self.record) + info + "/RECORD,,\n")
        self.zip.close()


def _build(directory, library, files):
    tag = "py3-none-" + (re.sub(r"[-.]", "_", sysconfig.get_platform()) if library else "any")
    base = "gpushmem-" + _version()
    name = "%s-%s.whl" % (base, tag)
    wheel = _Wheel(os.path.join(directory, name))
    for inside, path in files:
        if isinstance(path, bytes):
            wheel.add(inside, path)
        else:
            wheel.add_file(inside, path)
    if library:
        wheel.add_file("gpushmem/lib/" + LIBRARY, library)
    wheel.add(base + ".dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: gpushmem\nRoot-Is-Purelib: %s\nTag: %s\n"
              % ("false" if library else "true", tag))
    wheel.close(base + ".dist-info")
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    library, nvshmem = _settings(config_settings)
    return _build(wheel_directory, library, _sources(nvshmem))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    library, _ = _settings(config_settings)
    return _build(wheel_directory, library, [("gpushmem_editable.pth", (HERE + "\n").encode())])


def build_sdist(sdist_directory, config_settings=None):
    base = "gpushmem-" + _version()
    name = base + ".tar.gz"
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for inside, path in list(_sources(True)) + [(one, os.path.join(HERE, one))
                                                    for one in ("pyproject.toml", "README.md", "wheel_backend.py")]:
            archive.add(path, base + "/" + inside)
    return name

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Spack's and conda's recipes, the container file and the module file, as far as a machine without those can tell: they are well
formed, and name options, versions, packages and files that this project has.

    SOURCE=. recipes.py
"""
import os
import py_compile
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

SOURCE = os.environ.get("SOURCE", ".")


def text_of(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def options():
    """What cmake -D may set."""
    text = text_of("CMakeLists.txt")
    return set(re.findall(r"(?:option\(|set\()(GPUSHMEM_\w+)", text))


class Spec:
    """A stand-in of Spack's for what cmake_args asks."""

    def __init__(self, *wanted):
        self.wanted = wanted
        self.variants = {"cuda_arch": types.SimpleNamespace(value=("80", "90"))}

    def satisfies(self, text):
        return text in self.wanted


class Package:
    def __init__(self, spec):
        self.spec = spec

    def define(self, name, value):
        return "-D%s=%s" % (name, {True: "ON", False: "OFF"}.get(value, value))

    def define_from_variant(self, name, variant):
        assert variant in Recipe.told["variant"], variant
        return self.define(name, self.spec.satisfies("+" + variant))


def spack(told):
    """The module spack.package; `told` gets what each directive is told."""
    module = types.ModuleType("spack.package")

    def directive(name):
        def note(*arguments, **more):
            told.setdefault(name, {})[arguments[0]] = more
        return note

    for name in ("version", "variant", "depends_on", "conflicts", "license", "generator"):
        setattr(module, name, directive(name))
    module.CMakePackage = type("CMakePackage", (Package,), {})
    module.CudaPackage = type("CudaPackage", (), {})
    module.run_after = lambda phase: lambda function: function
    module.Executable = None
    return module


class Recipe(unittest.TestCase):
    told = {}

    @classmethod
    def setUpClass(cls):
        cls.path = os.path.join(SOURCE, "packaging/spack/packages/gpushmem/package.py")
        sys.modules["spack"] = types.ModuleType("spack")
        sys.modules["spack.package"] = spack(cls.told)
        cls.recipe = runpy.run_path(cls.path)["Gpushmem"]

    def test_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            py_compile.compile(self.path, cfile=os.path.join(folder, "package.pyc"), doraise=True)

    def test_arguments_are_options_of_this_project(self):
        for wanted in ((), ("+cuda",), ("+cuda", "+benchmarks")):
            arguments = self.recipe(Spec(*wanted)).cmake_args()
            for argument in arguments:
                name, value = re.fullmatch(r"-D(\w+)=(.+)", argument).groups()
                self.assertTrue(name in options() or name == "CMAKE_CUDA_ARCHITECTURES", argument)
                self.assertNotIn(value, ("True", "False", "None"))
            self.assertEqual("-DGPUSHMEM_CUDA=ON" in arguments, "+cuda" in wanted)
            self.assertEqual("-DGPUSHMEM_TESTS=ON" in arguments, "+benchmarks" in wanted)
            self.assertEqual("-DCMAKE_CUDA_ARCHITECTURES=80;90" in arguments, "+cuda" in wanted)

    def test_versions_are_those_of_the_build(self):
        version = re.search(r"project\(gpushmem VERSION (\S+)", text_of("CMakeLists.txt")).group(1)
        self.assertIn(version, self.told["version"])
        for module, least in re.findall(r"IMPORTED_TARGET (\w+)>=([\d.]+)", text_of("cmake/GpushmemDependencies.cmake")):
            self.assertIn("%s@%s:" % (module, least), self.told["depends_on"])
        least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", text_of("CMakeLists.txt")).group(1)
        self.assertIn("cmake@%s:" % least, self.told["depends_on"])
        self.assertIn("rdma-core", self.told["depends_on"])


class ContainerFile(unittest.TestCase):
    KNOWN = {"FROM", "RUN", "COPY", "USER", "WORKDIR", "CMD", "ENV", "ARG", "LABEL", "ENTRYPOINT"}

    def setUp(self):
        text = re.sub(r"(?m)^#.*\n", "", text_of("packaging/Containerfile"))
        lines = re.sub(r"\\\n\s*", " ", text).splitlines()
        self.steps = [line.split(None, 1) for line in lines if line.strip()]
        self.runs = [argument for name, argument in self.steps if name == "RUN"]

    def commands(self):
        for run in self.runs:
            for command in run.split("&&"):
                yield shlex.split(command)

    def test_instructions(self):
        self.assertEqual(self.steps[0][0], "FROM")
        for name, argument in self.steps:
            self.assertIn(name, self.KNOWN)
            self.assertTrue(argument.strip(), name)
        for run in self.runs:
            shlex.split(run)  # quotes are closed
            self.assertNotIn("&& &&", run)
            self.assertFalse(run.rstrip().endswith("&&"), run)

    def test_stages(self):
        stages = [argument.split() for name, argument in self.steps if name == "FROM"]
        self.assertEqual([stage[0] for stage in stages], ["debian:12", "debian:12"])
        named = {stage[2] for stage in stages if len(stage) == 3 and stage[1] == "AS"}
        for name, argument in self.steps:
            for stage in re.findall(r"--from=(\S+)", argument) if name == "COPY" else ():
                self.assertIn(stage, named)

    def test_last_stage_runs_as_a_user(self):
        last = self.steps[max(i for i, step in enumerate(self.steps) if step[0] == "FROM"):]
        user = [argument for name, argument in last if name == "USER"]
        self.assertEqual(len(user), 1)
        self.assertIn("useradd --create-home " + user[0], " ".join(self.runs))
        self.assertEqual(last[-1][0], "CMD")

    def test_build_names_what_there_is(self):
        for command in self.commands():
            for name in (word[2:].split("=")[0] for word in command if word.startswith("-DGPUSHMEM")):
                self.assertIn(name, options())
        installed = {word for command in self.commands() if command[:2] == ["apt-get", "install"] for word in command}
        wanted = re.search(r'^build="(.*)"$', text_of("tests/setup.sh"), re.M).group(1).split()
        self.assertEqual(set(wanted) - installed, set())
        made = re.findall(r"_PACKAGE_NAME (\S+)\)", text_of("cmake/GpushmemPackages.cmake")) + ["libgpushmem0"]
        for package in (word for word in installed if word.startswith("/packages/")):
            self.assertIn(re.fullmatch(r"/packages/(.*)_\*\.deb", package).group(1), made)


class Conda(unittest.TestCase):
    def setUp(self):
        self.text, self.script = text_of("packaging/conda/meta.yaml"), text_of("packaging/conda/build.sh")

    def test_version_and_needs_are_those_of_the_build(self):
        version = re.search(r"project\(gpushmem VERSION (\S+)", text_of("CMakeLists.txt")).group(1)
        self.assertIn('set version = "%s"' % version, self.text)
        least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", text_of("CMakeLists.txt")).group(1)
        self.assertIn("- cmake >=%s\n" % least, self.text)
        names = {"hwloc": "libhwloc", "pmix": "libpmix-devel"}
        for module, least in re.findall(r"IMPORTED_TARGET (\w+)>=([\d.]+)", text_of("cmake/GpushmemDependencies.cmake")):
            self.assertIn("- %s >=%s\n" % (names[module], least), self.text)

    def test_script_names_what_there_is(self):
        words = shlex.split(self.script.replace("\\\n", " "), comments=True)
        for name in (word[2:].split("=")[0] for word in words if word.startswith("-DGPUSHMEM")):
            self.assertIn(name, options())
        for folder in re.findall(r"install .* (\S+)\n", self.script):
            self.assertTrue(folder == "build/conda" or os.path.exists(os.path.join(SOURCE, folder)), folder)


class ModuleFile(unittest.TestCase):
    """Run by Tcl, with the commands of Environment Modules that it calls."""

    def loaded(self, lib):
        with tempfile.TemporaryDirectory() as prefix:
            os.makedirs(os.path.join(prefix, lib))
            open(os.path.join(prefix, lib, "libgpushmem.so.0"), "w").close()
            path = os.path.join(prefix, "share/modulefiles/gpushmem/0.1.0")
            os.makedirs(os.path.dirname(path))
            shutil.copy(os.path.join(SOURCE, "packaging/modulefile"), path)
            program = ('foreach c {setenv prepend-path} {proc $c {name value} {puts "$name=$value"}}\n'
                       'foreach c {module-whatis conflict} {proc $c args {}}\n'
                       'set ModulesCurrentModulefile %s; source %s\n' % (path, path))
            done = subprocess.run(["tclsh"], input=program, capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")
            real = os.path.realpath(prefix)
            return dict(line.split("=", 1) for line in done.stdout.replace(real, "P").replace(prefix, "P").splitlines())

    @unittest.skipUnless(shutil.which("tclsh"), "no tclsh")
    def test_it_finds_its_prefix(self):
        for lib in ("lib", "lib64", "lib/x86_64-linux-gnu"):
            found = self.loaded(lib)
            self.assertEqual(found["PATH"], "P/bin")
            self.assertEqual(found["LD_LIBRARY_PATH"], "P/" + lib)
            self.assertEqual(found["PKG_CONFIG_PATH"], "P/%s/pkgconfig" % lib)
            self.assertEqual(found["GPUSHMEM_HOME"], "P")


if __name__ == "__main__":
    unittest.main()

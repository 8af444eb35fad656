# SPDX-License-Identifier: BSD-3-Clause
"""Spack's recipe. In a clone of this project:

    spack repo add packaging/spack
    spack dev-build gpushmem@0.1.0 +cuda cuda_arch=90
"""
from spack.package import *


class Gpushmem(CMakePackage, CudaPackage):
    """One-sided communication between GPUs and CPUs: a symmetric heap, puts, gets, atomics, signals
    and collectives from the host, from CUDA streams and from kernels, over NVLink, shared memory
    and RDMA NICs."""

    homepage = "https://example.invalid/gpushmem"
    # No public address is known to this recipe: dev-build takes the clone, or set your own here.
    git = "https://example.invalid/gpushmem.git"

    license("BSD-3-Clause")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("benchmarks", default=True, description="Build what `gpushmem perf` runs, and the tests")
    variant("openmpi", default=False, description="Depend on Open MPI, whose mpirun starts jobs by PMIx")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("pmix@4.2:")
    depends_on("hwloc@2.4:")
    depends_on("rdma-core")
    depends_on("openmpi@4.1:", type="run", when="+openmpi")

    conflicts("platform=darwin", msg="gpushmem needs Linux: memfd, futexes, epoll")
    conflicts("platform=windows", msg="gpushmem needs Linux: memfd, futexes, epoll")
    conflicts("+cuda cuda_arch=none", msg="name the GPUs: cuda_arch=90 for H100 and H200")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("GPUSHMEM_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
            self.define_from_variant("GPUSHMEM_TESTS", "benchmarks"),
            self.define("GPUSHMEM_EXAMPLES", False),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", ";".join(self.spec.variants["cuda_arch"].value)))
        return args

    @run_after("install")
    def check_program(self):
        """The installed program starts, and finds its libraries."""
        Executable(self.prefix.bin.gpushmem)("version")

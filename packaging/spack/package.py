# The package of Spack, built from a clone:
#
#   spack repo create ~/waywiser-spack waywiser
#   mkdir -p ~/waywiser-spack/spack_repo/waywiser/packages/py_waywiser
#   cp packaging/spack/package.py ~/waywiser-spack/spack_repo/waywiser/packages/py_waywiser/
#   spack repo add ~/waywiser-spack/spack_repo/waywiser
#   spack dev-build --source-path "$PWD" py-waywiser@0.1.0
#
# For Spack's own repository add the address and the sha256 of the source archive of a release.
from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyWaywiser(PythonPackage):
    """Measures every way bytes can move in a machine with CPUs and GPUs, with honest statistics."""

    license("Apache-2.0")

    version("0.1.0")

    variant("cuda", default=False, description="Measure GPUs too")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.28:4.1", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("py-scikit-build-core@1.0:", type="build")
    depends_on("py-nanobind@2.9:", type="build")
    depends_on("hwloc@2.4:")
    depends_on("cuda@12.4:", when="+cuda")

    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("py-numpy@1.26:", type="run")
    depends_on("py-scipy@1.11:", type="run")
    depends_on("py-msgspec@0.19:", type="run")
    depends_on("py-typer@0.15:", type="run")
    depends_on("py-rich@13.7:", type="run")
    depends_on("py-nvidia-ml-py@12.560:", type="run")
    depends_on("py-matplotlib@3.8:", type="run")
    depends_on("py-jinja2@3.1:", type="run")
    depends_on("py-cryptography@42:", type="run")

    conflicts("%gcc@:11", msg="C++20 of g++ 12 or later is needed")

    def config_settings(self, spec, prefix):
        return {
            "cmake.define.WAYWISER_CUDA": "ON" if spec.satisfies("+cuda") else "OFF",
            "cmake.define.WAYWISER_LOCAL_GPUS": "OFF",
        }

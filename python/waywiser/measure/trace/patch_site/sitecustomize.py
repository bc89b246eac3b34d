"""Makes copies of PyTorch by Waywiser in a program of ``waywiser trace --with-patch``.

Python imports it at its start. Once ``torch`` is imported, `waywiser.transfer.torch.patch` becomes
active in every thread that imports or starts it. A ``sitecustomize`` of the program's own is
imported too. Nothing here fails the program.
"""

import os
import sys
import threading
from importlib import import_module

PATCHED = "WAYWISER_TRACE_PATCH"


def _import_next() -> None:
    """Imports the ``sitecustomize`` that this one hides."""
    own = os.path.dirname(os.path.abspath(__file__))
    here = [path for path in sys.path if os.path.abspath(path or ".") != own]
    module, former = sys.modules.pop("sitecustomize", None), sys.path[:]
    sys.path[:] = here
    try:
        import_module("sitecustomize")
    except ImportError:
        pass
    finally:
        sys.path[:] = former
        if module is not None:
            sys.modules["sitecustomize"] = module


class _Watcher:
    """Patches when ``torch`` has been imported."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != "torch" or path is not None:
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        from importlib.util import find_spec

        spec = find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        execute = loader.exec_module

        def execute_and_patch(module: object) -> None:
            execute(module)  # type: ignore[arg-type]
            _patch()

        loader.exec_module = execute_and_patch  # type: ignore[method-assign]
        return spec


def _patch() -> None:
    """Enters the patch in this thread, and in each one that starts later."""
    try:
        if (package := os.environ[PATCHED]) not in sys.path:
            sys.path.append(package)
        from waywiser.transfer.torch import patch
    except Exception as error:
        print(f"waywiser: copies of PyTorch are not patched: {error}", file=sys.stderr)
        return
    patch().__enter__()
    run = threading.Thread.run

    def run_patched(thread: threading.Thread) -> None:
        with patch():
            run(thread)

    threading.Thread.run = run_patched  # type: ignore[method-assign, assignment]


if PATCHED in os.environ:
    _import_next()
    sys.meta_path.insert(0, _Watcher())  # type: ignore[arg-type]

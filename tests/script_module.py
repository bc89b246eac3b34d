"""Files of benchmarks and documents that no package holds, as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tree import ROOT


def script_module(file: Path) -> ModuleType:
    """Runs a file of the source tree and returns its module: a new one by each call, under the name
    of its path."""
    name = ".".join(file.resolve().relative_to(ROOT).with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where its types look for each other
    spec.loader.exec_module(module)
    return module

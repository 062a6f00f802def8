"""The modules of references/, loaded by path under a private name, as the toolkit loads a project."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

_ANCHOR = "_references_under_test"
if _ANCHOR not in sys.modules:
    sys.modules[_ANCHOR] = ModuleType(_ANCHOR)
    sys.modules[_ANCHOR].__path__ = [str(Path(__file__).resolve().parents[2])]


def _load(name: str) -> ModuleType:
    return importlib.import_module(f"{_ANCHOR}.references.{name}")


attention = _load("attention")
binary32 = _load("binary32")
bounds = _load("bounds")
contract = _load("contract")
domain = _load("domain")
fp64 = _load("fp64")
merge = _load("merge")
mutations = _load("mutations")
omissions = _load("omissions")
paging = _load("paging")
array_library = _load("array_library")
scalar_bounds = _load("scalar_bounds")
scalar_contract = _load("scalar_contract")
scalar_fp64 = _load("scalar_fp64")
scalar_mutations = _load("scalar_mutations")
splits = _load("splits")
tensor_core = _load("tensor_core")
underflow = _load("underflow")
wrong_steps = _load("wrong_steps")

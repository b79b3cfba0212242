"""An import hook that adds a backend to Keras.

Keras chooses its backend while it is imported: six modules compare `backend()` with the names of known backends. The
finder below loads these modules with one more branch. The change is made on the syntax tree, in memory; Keras's files
and bytecode caches are not touched.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType
from typing import Any

NAME = "taut"
PACKAGE = "taut.keras.backend"

BRANCHES = {
    "keras.src.backend": f"""
from {PACKAGE} import *
from {PACKAGE}.variable import Variable as BackendVariable
from {PACKAGE} import distribution_lib
# Preprocessing layers import the backend "tensorflow" by name for tensors of tf.data, which are this package's.
import {PACKAGE}.tensorflow as tensorflow
""",
    "keras.src.layers.layer": f"from {PACKAGE}.layer import Layer as BackendLayer",
    "keras.src.models.model": f"from {PACKAGE}.trainer import Trainer as Trainer",
    "keras.src.export.saved_model": f"""
from {PACKAGE}.export import ExportArchive as BackendSavedModelExportArchive
""",
    "keras.src.optimizers.optimizer": f"from {PACKAGE}.optimizer import Optimizer as BackendOptimizer",
}
"""The code of this backend's branch in each module of Keras that selects a backend on import."""

MODULES = "keras.src.utils.module_utils"
"""The module that imports optional packages. Its `tensorflow`, with which preprocessing layers and utilities process text,
files and datasets, becomes this package; the package `tensorflow` itself is neither needed nor replaced."""

SAVING = ("keras.src.legacy.saving.json_utils",)
"""The module that writes objects as TensorFlow does, with names that this package does not have: it keeps that name."""

DATASETS = "keras.src.utils.dataset_utils"
"""The module that recognizes `tf.data` datasets by the name of their module, to split them."""

DYNAMIC = "keras.src.utils.backend_utils"
"""The module whose `DynamicBackend` looks a backend up by name at run time."""


def install() -> None:
    """Registers the backend `taut` with Keras. Calling it again has no effect.

    Raises:
        ImportError: Keras is already loaded with another backend.
    """
    check_not_loaded()
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def check_not_loaded() -> None:
    """Raises ImportError if Keras is already loaded with another backend: its classes cannot be changed any more."""
    config = sys.modules.get("keras.src.backend.config")
    if config is not None and config.backend() != NAME:
        raise ImportError(
            f"Keras is already loaded with the backend {config.backend()!r}. Import taut.keras before "
            f"keras, or set KERAS_BACKEND={NAME} and import taut.keras first."
        )


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of Keras that select a backend, and loads them with `SwitchLoader` or `DynamicLoader`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        loader: type[importlib.machinery.SourceFileLoader]
        if fullname in BRANCHES:
            loader = SwitchLoader
        elif fullname == DYNAMIC:
            loader = DynamicLoader
        elif fullname == MODULES:
            loader = ModulesLoader
        elif fullname in SAVING:
            loader = SavingLoader
        elif fullname in REWRITES:
            loader = RewriteLoader
        elif fullname == DATASETS:
            loader = DatasetsLoader
        else:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None:
            return None
        if not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            raise changed(fullname, "it is not loaded from a source file")
        spec.loader = loader(fullname, str(spec.origin))
        return spec


class SwitchLoader(importlib.machinery.SourceFileLoader):
    """Loads a module with an additional branch before its chain of comparisons."""

    def get_code(self, fullname: str) -> CodeType:
        # The bytecode cache belongs to the unchanged source: it is neither read nor written.
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        add_branch(tree, fullname)
        return compile(tree, path, "exec", dont_inherit=True)


class ModulesLoader(importlib.machinery.SourceFileLoader):
    """Loads the table of optional packages, with this package as `tensorflow`."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if not hasattr(module, "LazyModule") or not hasattr(module, "tensorflow"):
            raise changed(self.name, "there is no LazyModule named tensorflow")
        setattr(module, "tensorflow", module.LazyModule("taut"))
        setattr(module, "gfile", module.LazyModule("taut.io.gfile"))


class SavingLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of Keras's file formats, in which `tf` is the package `tensorflow`."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        optional = importlib.import_module(MODULES)
        setattr(module, "tf", optional.LazyModule("tensorflow"))


class RewriteLoader(importlib.machinery.SourceFileLoader):
    """Loads a module after its function of `REWRITES` has changed its syntax tree."""

    def get_code(self, fullname: str) -> CodeType:
        # As in SwitchLoader.
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        REWRITES[fullname](tree)
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def import_own_summary(tree: ast.Module) -> None:
    """The TensorBoard callback imports `tensorflow.summary`, in place of which it gets `taut.summary`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "tensorflow.summary":
                    alias.name = "taut.summary"
        elif isinstance(node, ast.ImportFrom) and node.module == "tensorflow.compat.v1":
            node.module = "taut.summary"


def freeze_table(tree: ast.Module) -> None:
    """`Embedding.enable_lora` freezes the table by an attribute of `self.embeddings`, which is a temporary tensor once the
    table is quantized (other backends' tensors take any attribute): it freezes the variable `self._embeddings` instead.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self.embeddings.trainable":
            target: Any = node.targets[0]
            target.value.attr = "_embeddings"


def allow_as_tensorflow(tree: ast.Module) -> None:
    """`BatchNormalization(synchronized=True)` and `TFSMLayer` are for the backend named tensorflow, and for this one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and ast.unparse(node) == "backend.backend() != 'tensorflow'":
            node.ops, node.comparators = [ast.NotIn()], [ast.parse(repr(("tensorflow", NAME)), mode="eval").body]


def allow_soft_cap(tree: ast.Module) -> None:
    """`keras.ops.dot_product_attention(attn_logits_soft_cap=)` is for JAX on TPUs, and for this backend."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "dot_product_attention":
            for refusal in node.body:
                if isinstance(refusal, ast.If) and ast.unparse(refusal.test) == "attn_logits_soft_cap is not None":
                    other = ast.parse(f"backend.backend() != {NAME!r}", mode="eval").body
                    refusal.test = ast.BoolOp(ast.And(), [refusal.test, other])


def allow_ragged(tree: ast.Module) -> None:
    """`TextVectorization(ragged=True)` is for TensorFlow's strings, which are this package's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "ragged and backend.backend() != 'tensorflow'":
            node.test = ast.Constant(False)


def keep_attributes_aside(tree: ast.Module) -> None:
    """The functions of Keras 2 set attributes of tensors, for which Keras has a function where tensors take none."""
    for node in ast.walk(tree):
        for name, part in ast.iter_fields(node):
            if isinstance(part, list):
                setattr(node, name, [_set_aside(one) for one in part])


def _set_aside(node: ast.AST) -> ast.AST:
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if not isinstance(target, ast.Attribute) or not target.attr.startswith("_keras_"):
        return node
    value = ast.unparse(node.value)  # type: ignore[attr-defined]
    module, call = "keras.src.backend.common.tensor_attributes", f"set_tensor_attr({{}}, {target.attr!r}, {{}})"
    if target.attr == "_keras_logits":
        module, call = "taut.keras.backend.logits", "with_logits({}, {})"
    call = call.format(ast.unparse(target.value), value)
    return ast.parse(f"__import__({module!r}, fromlist=['']).{call}").body[0]


REWRITES: dict[str, Callable[[ast.Module], None]] = {
    "keras.src.callbacks.tensorboard": import_own_summary,
    "keras.src.export.tfsm_layer": allow_as_tensorflow,
    "keras.src.layers.core.embedding": freeze_table,
    "keras.src.layers.preprocessing.text_vectorization": allow_ragged,
    "keras.src.legacy.backend": keep_attributes_aside,
    "keras.src.layers.normalization.batch_normalization": allow_as_tensorflow,
    "keras.src.ops.nn": allow_soft_cap,
}
"""What is changed in modules of Keras beside their choice of a backend."""


class DatasetsLoader(importlib.machinery.SourceFileLoader):
    """Loads the utilities for datasets, whose `is_tf_dataset` then knows this package's."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        known = getattr(module, "is_tf_dataset", None)
        if known is None:
            raise changed(self.name, "there is no is_tf_dataset")

        def is_tf_dataset(dataset: Any) -> bool:
            return isinstance(dataset, importlib.import_module("taut.data").Dataset) or known(dataset)

        setattr(module, "is_tf_dataset", is_tf_dataset)


class DynamicLoader(importlib.machinery.SourceFileLoader):
    """Loads `DynamicBackend` and makes it find this backend by name."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        known = getattr(module, "DynamicBackend", None)
        if known is None or not hasattr(known, "set_backend") or not hasattr(known, "__getattr__"):
            raise changed(self.name, "there is no DynamicBackend with set_backend and __getattr__")
        look_up, set_backend = known.__getattr__, known.set_backend

        def __getattr__(self, name):  # noqa: N807
            if self._backend == NAME:
                return getattr(importlib.import_module(PACKAGE), name)
            return look_up(self, name)

        def set_backend_or_ours(self, backend):
            # Layers select "tensorflow" for elements of datasets, which are this package's tensors.
            if backend in (NAME, "tensorflow"):
                self._backend = NAME
            else:
                set_backend(self, backend)

        known.__getattr__, known.set_backend = __getattr__, set_backend_or_ours


def add_branch(tree: ast.Module, module: str) -> None:
    """Inserts the branch of `module` before its top-level switch."""
    for place, node in enumerate(tree.body):
        if is_switch(node):
            switch: Any = node
            test = ast.Compare(switch.test.left, [ast.Eq()], [ast.Constant(NAME)])
            branch = ast.If(test, ast.parse(BRANCHES[module]).body, [node])
            for part in (test, *branch.body):
                for child in ast.walk(part):
                    ast.copy_location(child, node)
            tree.body[place] = ast.fix_missing_locations(ast.copy_location(branch, node))
            return
    raise changed(module, 'there is no `if backend() == "tensorflow": ... else: ...` at top level')


def is_switch(node: ast.stmt) -> bool:
    """Whether `node` is `if [...]backend() == "tensorflow"` with further branches."""
    if not (isinstance(node, ast.If) and node.orelse and isinstance(node.test, ast.Compare)):
        return False
    left, right = node.test.left, node.test.comparators[0]
    return (
        isinstance(node.test.ops[0], ast.Eq)
        and isinstance(right, ast.Constant)
        and right.value == "tensorflow"
        and isinstance(left, ast.Call)
        and ast.unparse(left.func).split(".")[-1] == "backend"
    )


def changed(module: str, what: str) -> ImportError:
    """The error for a version of Keras whose backend switches have another form."""
    return ImportError(
        f"The Taut backend cannot register with this version of Keras: in {module}, {what}. "
        "It is known to work with Keras 3.15."
    )

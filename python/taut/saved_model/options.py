"""Options of saved models."""

from __future__ import annotations

from typing import Any

from .._common import refuse, refuse_option


class SaveOptions:
    """Options of `tf.saved_model.save`.

    Accepted with nothing to act on: there is no list of ops that a file may use (`namespace_whitelist`), lines are always
    saved (`save_debug_info`, `experimental_debug_stripper`), the file is written by this process
    (`experimental_io_device`), functions have the gradients of their calls (`experimental_custom_gradients`), and there is
    no limit of size (`experimental_image_format`).
    """

    def __init__(
        self,
        namespace_whitelist: Any = None,
        save_debug_info: bool = False,
        function_aliases: Any = None,
        experimental_debug_stripper: bool = False,
        experimental_io_device: str | None = None,
        experimental_variable_policy: Any = None,
        experimental_custom_gradients: bool = True,
        experimental_image_format: bool = False,
        experimental_skip_saver: bool = False,
        experimental_sharding_callback: Any = None,
        extra_tags: Any = None,
    ) -> None:
        name = "SaveOptions"
        refuse_option(
            name, "function_aliases", function_aliases or None, "functions have the names of their attributes"
        )
        policy = experimental_variable_policy
        refuse_option(name, "experimental_variable_policy", policy or None, "there is one device")
        refuse_option(name, "experimental_skip_saver", experimental_skip_saver, "variables are always saved", False)
        refuse_option(name, "experimental_sharding_callback", experimental_sharding_callback, "tensors are in one file")
        refuse_option(name, "extra_tags", extra_tags or None, "a saved model has the tag 'serve'")
        self.namespace_whitelist = namespace_whitelist or []
        self.save_debug_info = save_debug_info
        self.function_aliases: dict = {}
        self.experimental_debug_stripper = experimental_debug_stripper
        self.experimental_io_device = experimental_io_device
        self.experimental_variable_policy = None
        self.experimental_custom_gradients = experimental_custom_gradients
        self.experimental_image_format = experimental_image_format
        self.experimental_skip_saver = False
        self.experimental_sharding_callback = None
        self.extra_tags = None


class LoadOptions:
    """Options of `tf.saved_model.load`.

    Accepted with nothing to act on: a file has every value (`allow_partial_checkpoint`), and is read by this process
    (`experimental_io_device`).
    """

    def __init__(
        self,
        allow_partial_checkpoint: bool = False,
        experimental_io_device: str | None = None,
        experimental_skip_checkpoint: bool = False,
        experimental_variable_policy: Any = None,
        experimental_load_function_aliases: bool = False,
    ) -> None:
        name = "LoadOptions"
        skips, aliases = experimental_skip_checkpoint, experimental_load_function_aliases
        refuse_option(name, "experimental_skip_checkpoint", skips, "a variable has its value from the start", False)
        refuse_option(name, "experimental_variable_policy", experimental_variable_policy, "there is one device")
        refuse_option(name, "experimental_load_function_aliases", aliases, "there are no aliases", False)
        self.allow_partial_checkpoint = allow_partial_checkpoint
        self.experimental_io_device = experimental_io_device
        self.experimental_skip_checkpoint = False
        self.experimental_variable_policy = None
        self.experimental_load_function_aliases = False


def checked_save_options(options: Any) -> None:
    """Raises TypeError for another object."""
    if options is not None and not isinstance(options, SaveOptions):
        refuse("saved_model.save", f"options must be tf.saved_model.SaveOptions, got {options!r}", TypeError)


def checked_load_options(options: Any) -> None:
    """Raises TypeError for another object."""
    if options is not None and not isinstance(options, LoadOptions):
        refuse("saved_model.load", f"options must be tf.saved_model.LoadOptions, got {options!r}", TypeError)

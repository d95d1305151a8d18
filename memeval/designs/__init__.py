"""Memory tool designs: what is compared. Subclass `MemoryDesign`, `register` it, list it in a sweep."""

from memeval.designs.base import Context, Injection, MemoryDesign
from memeval.designs.registry import DesignSpec, design_names, open_design, register
from memeval.designs.tools import recall_topic_tool, save_tool, save_topic_tool, search_tool

__all__ = [
    "Context",
    "DesignSpec",
    "Injection",
    "MemoryDesign",
    "design_names",
    "open_design",
    "recall_topic_tool",
    "register",
    "save_tool",
    "save_topic_tool",
    "search_tool",
]

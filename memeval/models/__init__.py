"""Chat models: what is asked, how calls are asked for, and what came back."""

from memeval.models.base import CallingMode, ChatModel, Options
from memeval.models.registry import open_model, register_model

__all__ = ["CallingMode", "ChatModel", "Options", "open_model", "register_model"]

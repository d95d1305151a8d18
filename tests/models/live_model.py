"""The model of a live test, or the reason why it is skipped."""

from __future__ import annotations

import pytest

from memeval.errors import InfrastructureError, InputError
from memeval.models.ollama import OllamaModel


def live(name: str) -> OllamaModel:
    """The model of a name on the server there is; the test is skipped where either is missing."""
    model = OllamaModel(name)
    try:
        assert model.digest
    except InfrastructureError as error:
        pytest.skip(f"no live server: {error}")
    except InputError as error:
        pytest.skip(f"the model is not there: {error}")
    return model

"""For every test: a cache folder of its own, so that nothing reads or fills the user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from groundrule._util.files import cache_folder
from groundrule.llm import registry


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """The folder of the embedded model, pulled into the user's real cache: it is too large to fetch per test."""
    from groundrule.models import embedded

    return embedded.pull(print)


@pytest.fixture(autouse=True)
def own_cache_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Tests marked `embedded` find the real model there, and nothing else."""
    pulled = request.getfixturevalue("embedded_model") if _is_embedded(request) else None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    folder = cache_folder()
    if pulled is not None:
        (folder / "models").mkdir()
        (folder / "models" / pulled.name).symlink_to(pulled)
    return folder


@pytest.fixture
def judge_named(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A function that lets names beginning with a prefix be made by a "module:factory" during this test."""
    monkeypatch.setattr(registry, "_TARGETS", dict(registry._TARGETS))
    return registry.register_prefix


def _is_embedded(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("embedded") is not None

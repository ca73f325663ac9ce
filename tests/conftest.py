"""What every test shares."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_user_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Rounds, jobs and journals of tests go to a folder of their own, not to the user's.

    The Hub is not asked but by tests that bring one of their own. A developer's proxies and tokens
    are not theirs: servers of tests are on this host.
    """
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("user")
    patch.setenv("XDG_DATA_HOME", str(folder / "data"))
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    patch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        patch.delenv(name, raising=False)
        patch.delenv(name.lower(), raising=False)
    yield
    patch.undo()

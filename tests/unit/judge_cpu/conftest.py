import pytest


@pytest.fixture(scope="session")
def triton_cache(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("triton"))

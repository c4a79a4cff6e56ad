import pytest

from tbadapters import evaluate


@pytest.fixture
def run(desk, tmp_path):
    """Return evaluate() on the desk suite with quiet defaults."""

    async def run(agent, **options):
        return await evaluate(agent, **{"suite": desk, "trials": 4, "out": tmp_path, "progress": "off"} | options)

    return run

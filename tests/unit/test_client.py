"""The client's one place: its names are the scheme's, and its example runs."""

import re

import pytest

from fhelium import client


def test_every_name_is_there_and_comes_from_the_scheme() -> None:
    assert sorted(client.__all__) == sorted(set(client.__all__))
    for name in client.__all__:
        value = getattr(client, name)
        assert name == "PRESETS" or value.__module__.startswith("fhelium.scheme.")
        assert name == "PRESETS" or value.__doc__


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    lines = re.findall(r"^    (.*)$|^$", client.__doc__ or "", re.MULTILINE)
    exec("\n".join(lines), {})
    found = [float(x) for x in capsys.readouterr().out.strip("[] \n").split()]
    assert found == pytest.approx([0.5, -0.25], abs=1e-5)

"""docs/encrypted_model.md: every block runs as it stands, commands too, in a folder of its own."""

import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs/encrypted_model.md"


@pytest.mark.long
def test_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    commands = {each.name: each for each in entry_points(group="console_scripts")}
    scope: dict[str, object] = {"__name__": "guide"}
    for language, code in re.findall(r"```(\w+)\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        if language == "python":
            exec(compile(code, GUIDE.name, "exec"), scope)
            continue
        assert language == "console"
        name, *arguments = shlex.split(code.removeprefix("$ "))
        assert commands[name].load()(arguments) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    (error,) = re.findall(r"largest error: (\S+)", printed)
    assert 0 < float(error) < 0.1
    assert "same answers: 20 of 20" in printed

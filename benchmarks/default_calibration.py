"""Measure the calibration that comes with FHElium again, for the presets N13 and N14.

    python benchmarks/default_calibration.py fhelium/analyses/default_calibration.json

takes some minutes on a machine that does nothing else. Collectives are those of one rank.
"""

import argparse
from pathlib import Path

import torch.distributed

from fhelium.analyses.calibration import Calibration
from fhelium.scheme.presets import PRESETS
from fhelium.tools.calibrate import calibrate, machine
from fhelium.tools.freed_memory import keep_freed_memory
from fhelium.tools.joining import join_ranks

NAMES = ("N13", "N14")
TIMEOUT = 1800.0
"""Seconds for a message."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    file = parser.parse_args().file
    keep_freed_memory()
    join_ranks(TIMEOUT, wanted=True)
    samples = [sample for name in NAMES for sample in calibrate(PRESETS[name]).samples]
    where = machine().removeprefix("measured on ")
    text = f"the default calibration, of another machine ({where}): see fhelium-run --calibrate"
    torch.distributed.destroy_process_group()
    file.write_text(Calibration(text, tuple(samples)).to_json())


if __name__ == "__main__":
    main()

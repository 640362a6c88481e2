"""Draw the results of `ckks_ops.py` as bars: `plot.py build/bench.json docs/benchmarks.svg`."""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
from matplotlib.ticker import ScalarFormatter

COLOURS = {"torch": "#9aa5b1", "openfhe": "#d98c5f", "cpu": "#2f6f8f"}


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the results of ckks_ops.py.")
    parser.add_argument("results", type=Path, help="the JSON that ckks_ops.py wrote")
    parser.add_argument("picture", type=Path, help="the SVG to write")
    options = parser.parse_args()
    rows = json.loads(options.results.read_text())
    ops = list(dict.fromkeys(row["op"] for row in rows))
    families = [name for name in COLOURS if any(row["family"] == name for row in rows)]
    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    height = 0.8 / len(families)
    for position, family in enumerate(families):
        median = {row["op"]: row["median_ms"] for row in rows if row["family"] == family}
        known = [op for op in ops if op in median]
        places = [ops.index(op) + (position - (len(families) - 1) / 2) * height for op in known]
        library = "OpenFHE" if family == "openfhe" else f"FHElium, {family}"
        axes.barh(
            places, [median[op] for op in known], height, label=library, color=COLOURS[family]
        )
    first = rows[0]
    axes.set(
        xscale="log",
        xlabel="median time, ms",
        title=f"N = 2^{first['log_n']}, {first['limbs']} primes, {first['digits']} digits, "
        f"threads: {first['threads']}",
    )
    axes.set_yticks(range(len(ops)), ops)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(options.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()

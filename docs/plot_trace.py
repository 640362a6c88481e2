"""Draw a trace of `fhelium-run --trace` as a picture: `python docs/plot_trace.py TRACE SVG`."""

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt

COLORS = {"compute": "#4c78a8", "communication": "#f58518", "wait": "#bab0ac"}


def main(source: str, target: str) -> None:
    """Draw one row for each thread of each rank, and time in milliseconds from left to right."""
    events = json.loads(Path(source).read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    names = {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["name"] == "thread_name"
    }
    rows = sorted({(span["pid"], span["tid"]) for span in spans}, reverse=True)
    figure, axes = plt.subplots(figsize=(10, 0.6 * len(rows) + 1.2), layout="constrained")
    for category, color in COLORS.items():
        for span in spans:
            if span["cat"] == category:
                row = rows.index((span["pid"], span["tid"]))
                start, width = span["ts"] / 1000, span["dur"] / 1000
                axes.barh(row, width, left=start, height=0.7, color=color, label=category)
    axes.set_yticks(range(len(rows)), [f"rank {rank}, {names[rank, tid]}" for rank, tid in rows])
    axes.set_xlabel("time [ms]")
    handles, labels = axes.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    axes.legend(shown.values(), shown.keys(), loc="upper center", ncols=3, frameon=False)
    axes.set_ylim(-0.6, len(rows) + 0.1)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    plt.rcParams["svg.hashsalt"] = "trace"
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", help="what fhelium-run --trace wrote")
    parser.add_argument("picture", help="the SVG file to write")
    paths = parser.parse_args()
    try:
        main(paths.trace, paths.picture)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"plot_trace: cannot draw {paths.trace} to {paths.picture}: {error!r}")

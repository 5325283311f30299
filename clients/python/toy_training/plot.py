#!/usr/bin/env python3
"""Draws curves of train.py as one SVG: reward and hack rate over steps, with and without Proctor.

    python3 plot.py OUT.svg CURVE.json...
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, GAP = 340, 210, 52, 40, 70
WITH, WITHOUT = "#0b6e4f", "#b3261e"


def panel(x: int, title: str, field: str, runs: list[dict[str, Any]]) -> list[str]:
    """One panel: an axis from 0 to 1, and a line a run; GRPO drawn through, PPO dashed."""
    steps = max(len(r["curve"]) for r in runs)
    out = [f'<text x="{x + WIDTH / 2:.0f}" y="{TOP - 14}" text-anchor="middle" font-weight="bold">{title}</text>']
    for tick in range(0, 5):
        y = TOP + HEIGHT * (1 - tick / 4)
        out.append(f'<line x1="{x}" y1="{y:.1f}" x2="{x + WIDTH}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{x - 6}" y="{y + 4:.1f}" text-anchor="end">{tick / 4:g}</text>')
    for i in range(0, steps, max(1, steps // 5)):
        out.append(f'<text x="{x + WIDTH * i / max(1, steps - 1):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{i}</text>')
    out.append(f'<text x="{x + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 34}" text-anchor="middle">step</text>')
    for r in runs:
        points = " ".join(f"{x + WIDTH * i / max(1, steps - 1):.1f},{TOP + HEIGHT * (1 - c[field]):.1f}" for i, c in enumerate(r["curve"]))
        color = WITH if r["mode"] == "enforce" else WITHOUT
        dash = ' stroke-dasharray="6 4"' if r["algorithm"] == "ppo" else ""
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
    return out


def legend(runs: list[dict[str, Any]]) -> list[str]:
    out, x = [], LEFT
    for r in runs:
        color = WITH if r["mode"] == "enforce" else WITHOUT
        dash = ' stroke-dasharray="6 4"' if r["algorithm"] == "ppo" else ""
        y = TOP + HEIGHT + 60
        out.append(f'<line x1="{x}" y1="{y}" x2="{x + 30}" y2="{y}" stroke="{color}" stroke-width="2"{dash}/>')
        words = f"{r['algorithm'].upper()}, {'with' if r['mode'] == 'enforce' else 'without'} Proctor"
        out.append(f'<text x="{x + 36}" y="{y + 4}">{words}</text>')
        x += 195
    return out


def svg(runs: list[dict[str, Any]]) -> str:
    body = panel(LEFT, "mean reward", "reward", runs) + panel(LEFT + WIDTH + GAP, "hack rate (rollouts that tried)", "hacks", runs) + legend(runs)
    width, height = LEFT + 2 * WIDTH + GAP + 20, TOP + HEIGHT + 78
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *body, "</svg>"]) + "\n"


def main() -> None:
    runs = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[2:]]
    pathlib.Path(sys.argv[1]).write_text(svg(runs))


if __name__ == "__main__":
    main()

"""What docs/serving.md says of `results/soak.json`."""

from __future__ import annotations

from typing import Any


def soak(record: dict[str, Any]) -> str:
    """In a paragraph."""
    asked, memory, measured = record["requests"], record["memory"], record["measured"]
    refused = sum(count for name, count in asked.items() if name.isdigit() and name not in ("200", "429"))
    changed = ", with uncommitted changes" if measured["uncommitted_changes"] else ""
    return (
        f"{record['minutes']:.0f} minutes under full load (`make soak`, commit {measured['commit']}{changed}, "
        f"{measured['cores']} cores): {asked['200']:,} requests answered, {asked['compared']:,} of them compared "
        f"token by token with the answer of an idle server, {asked['left']} clients that left in the middle, "
        f"{asked['429']} times 429, {refused} malformed or forbidden requests refused. "
        f"Faults: {record['fault_count']}; answers that differ by a near tie: {record['near_tie_count']}. "
        f"Memory after warm-up {memory['warm_mb']:,.0f} MB, at the end {memory['end_mb']:,.0f} MB "
        f"({memory['growth']:+.1%}), at most {memory['most_mb']:,} MB."
    )

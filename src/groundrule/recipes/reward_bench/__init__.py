"""A reward function is measured on labelled answers before anything is trained on it."""

from groundrule.recipes.reward_bench.bench import BenchReport, bench_reward

__all__ = ["BenchReport", "bench_reward"]

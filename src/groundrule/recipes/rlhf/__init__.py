"""The classic chain: answers -> rankings -> reward model -> PPO or DPO -> comparison with where it began."""

"""Constitutional AI: critique and revision -> warm-up -> AI preferences -> DPO or PPO -> comparison with the start."""

"""rlaxes: one GRPO task through many RL-for-LLM frameworks, measured along architectural axes."""

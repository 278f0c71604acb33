"""The full loop: a rollout, groups of attempts, a judge, and a step of GRPO. Runs on a laptop CPU.

python examples/03_training_loop.py [JUDGE]
"""

import asyncio
import sys

import groundrule as art
from groundrule.rewards import ruler_score_group

SYSTEM = "You are a support agent. Answer in one short sentence, using only the retrieved context."
SCENARIOS = [
    "[Retrieved context]: The library opens at 9 and closes at 20. Books are lent for four weeks.\n\n"
    "Question: How long may I keep a book?",
    "[Retrieved context]: A day ticket costs 7 euros and is valid until 3 in the morning.\n\n"
    "Question: What is the price of a ticket for the day?",
]


async def rollout(model: art.TrainableModel, scenario: str) -> art.Trajectory:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": scenario}]
    completion = await model.openai_client().chat.completions.create(
        model=model.get_inference_name(), messages=messages, max_tokens=24, temperature=0.7
    )
    return art.Trajectory(messages_and_choices=[*messages, completion.choices[0]], reward=0.0)


async def main(judge="local/likelihood", steps=2, base_model="smollm2-135m", path=None):
    model = art.TrainableModel(name="loop", project="examples", base_model=base_model)
    backend = art.LocalBackend(path=path)
    await model.register(backend)
    for _ in range(await model.get_step(), steps):
        groups = await art.gather_trajectory_groups(
            (art.TrajectoryGroup(rollout(model, scenario) for _ in range(4)) for scenario in SCENARIOS),
            after_each=lambda group: ruler_score_group(group, judge),
        )
        result = await model.train(groups, config=art.TrainConfig(learning_rate=1e-4))
        print(f"step {result.step}: mean reward {result.metrics['reward/mean']:.3f}")
    step = await model.get_step()
    await backend.close()
    return step


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))

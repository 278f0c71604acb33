"""RULER and a check of the facts in one training: the judge's score plus 1 for the right fact.

    python examples/07_hybrid_training.py [JUDGE]

Each answer keeps both signals in the run folder: `ruler_score` is the judge's, `correct` the check's, and the reward
that was trained on is their sum. What the judge alone would have given can still be read there afterwards.
"""

import asyncio
import json
import sys

import groundrule as art
from groundrule.rewards import ruler_score_group

SYSTEM = "You are a support agent. Answer in one short sentence, using only the retrieved context."
SCENARIOS = {
    "[Retrieved context]: The library opens at 9 and closes at 20. Books are lent for four weeks.\n\n"
    "Question: How long may I keep a book?": ("four weeks", "4 weeks"),
    "[Retrieved context]: A day ticket costs 7 euros and is valid until 3 in the morning.\n\n"
    "Question: What is the price of a ticket for the day?": ("7 euro", "seven euro"),
}


def verify_correctness(trajectory: art.Trajectory) -> float:
    question, answer = (trajectory.messages()[i]["content"] for i in (1, -1))
    return float(any(fact in answer.lower() for fact in SCENARIOS[question]))


async def rollout(model: art.TrainableModel, scenario: str) -> art.Trajectory:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": scenario}]
    completion = await model.openai_client().chat.completions.create(
        model=model.get_inference_name(), messages=messages, max_tokens=24, temperature=0.7
    )
    return art.Trajectory(messages_and_choices=[*messages, completion.choices[0]], reward=0.0)


async def judged(group: art.TrajectoryGroup, judge: str) -> art.TrajectoryGroup:
    group = await ruler_score_group(group, judge)
    for trajectory in group.trajectories:
        trajectory.metrics["correct"] = verify_correctness(trajectory)
        trajectory.reward += trajectory.metrics["correct"]
    return group


async def main(judge="local/likelihood", steps=2, base_model="smollm2-135m", path=None):
    model = art.TrainableModel(name="hybrid", project="examples", base_model=base_model)
    backend = art.LocalBackend(path=path)
    await model.register(backend)
    for _ in range(await model.get_step(), steps):
        groups = await art.gather_trajectory_groups(
            (art.TrajectoryGroup(rollout(model, scenario) for _ in range(4)) for scenario in SCENARIOS),
            after_each=lambda group: judged(group, judge),
        )
        await model.train(groups, config=art.TrainConfig(learning_rate=1e-4))
    run = backend.run_of(model).folder
    await backend.close()
    for file in sorted((run / "trajectories").iterdir()):
        for line in file.read_text(encoding="utf-8").splitlines():
            for answer in json.loads(line)["trajectories"]:
                signals = answer["metrics"]
                print(
                    f"{file.stem}: reward {answer['reward']:.2f} = judge {signals['ruler_score']:.2f} "
                    f"+ correct {signals['correct']:.0f}"
                )
    return run


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))

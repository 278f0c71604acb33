"""One verifier for four kinds of work: a triage desk, a biology class, a town's bylaws, notices for a board.

    python examples/08_universal_verifier.py [JUDGE]

The scenarios in examples/universal/ are made up, and each brings answers of which it is known whether they are right.
Without a JUDGE a simulated one reads them: it knows the truth, so what is shown is how the layers work together, and
not how good a judge is. Name a real one ("openai/...", "ollama/...") to see that.
"""

import asyncio
import sys
from pathlib import Path

from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.rewards import Rubric, UniversalVerifier
from groundrule.rewards.universal.simulated import SAME, NoisyExaminer
from groundrule.rollouts.scenarios import load_scenarios

FOLDER = Path(__file__).parent / "universal"


def group_of(scenario) -> TrajectoryGroup:
    answers = [
        [*scenario.messages(), {"role": "assistant", "content": a["text"]}]
        for a in scenario.metadata["answers"]
    ]
    metadata = {"reference": scenario.reference, "check": scenario.metadata.get("check")}
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=messages) for messages in answers],
        scenario_id=scenario.id,
        metadata=metadata,
    )


def simulated_judge(scenarios, rubric) -> NoisyExaminer:
    """Looks up what is true of an answer where the scenarios say so."""
    ids = {criterion.text: criterion.id for criterion in rubric.criteria} if rubric else {}

    def truth(statement: str, task: str, answer: str) -> bool:
        [scenario] = [s for s in scenarios if s.question in task]
        [known] = [a for a in scenario.metadata["answers"] if a["text"] == answer]
        return known["right"] if statement == SAME else ids[statement] in known["meets"]

    return NoisyExaminer(truth, error=0.0)


async def main(judge=None):
    scores = {}
    for name in ("triage", "biology", "policy", "writing"):
        scenarios = load_scenarios(FOLDER / f"{name}.jsonl")
        rubric = Rubric.load(FOLDER / f"{name}.toml") if (FOLDER / f"{name}.toml").exists() else None
        verifier = UniversalVerifier(
            rubric,
            judge or simulated_judge(scenarios, rubric),
            # Where there is a rubric, the reference is a colour or nothing: no text to say in other words.
            layers=("check", "rubric") if rubric else ("check", "reference"),
        )
        for scenario in scenarios:
            group = group_of(scenario)
            print(f"\n{name}: {scenario.question}")
            verdicts = await verifier.verdicts(group)
            for answer, verdict in zip(scenario.metadata["answers"], verdicts, strict=True):
                value = "none" if verdict.score is None else f"{verdict.score:.2f}"
                print(f"  {value}  {verdict.layer:9}  {answer['text'][:60]!r}: {verdict.explanation[:90]}")
            scores[scenario.id] = [verdict.score for verdict in verdicts]
    return scores


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))

"""A plain function as a scorer, and scorers by name."""

import pytest

from fakes import group_of
from groundrule.data import Score, Trajectory, TrajectoryGroup
from groundrule.errors import ConfigError
from groundrule.rewards import Ruler
from groundrule.rewards.functions import FunctionScorer, scorer_of, weights_of
from groundrule.rewards.handwritten import RagReward

USER = "[Retrieved context]: Open from 9 to 18.\n\nQuestion: When do you close?"


def rag_group(answer: str, **metadata) -> TrajectoryGroup:
    messages = [{"role": "user", "content": USER}, {"role": "assistant", "content": answer}]
    return TrajectoryGroup([Trajectory(messages_and_choices=messages)], metadata=metadata)


async def value_of(function, group=None):
    (score,) = await FunctionScorer(function, "mine").score(group or rag_group("At 18."))
    return score.value if score.value is not None else score.reason


async def test_a_function_gets_the_texts_that_it_names():
    seen = {}

    def reward(response, context, question):
        seen.update(response=response, context=context, question=question)
        return 0.5

    assert await value_of(reward) == 0.5
    assert seen == {"response": "At 18.", "context": "Open from 9 to 18.", "question": "When do you close?"}


async def test_a_function_of_one_other_name_gets_the_trajectory():
    assert await value_of(lambda t: len(t.messages())) == 2.0


async def test_a_function_may_be_async_and_ask_for_the_reference():
    async def reward(answer, reference):
        return float(answer == reference)

    assert await value_of(reward, rag_group("At 18.", reference="At 18.")) == 1.0


async def test_a_function_may_return_a_whole_score():
    assert await value_of(lambda t: Score.none("not today")) == "not today"


def broken(answer):
    raise KeyError("passage")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (broken, "mine failed: KeyError: 'passage'"),
        (lambda answer: None, "mine gave no score"),
        (lambda answer: "good", "returned 'good', which is no finite number"),
        (lambda answer: float("nan"), "returned nan, which is no finite number"),
        (lambda answer, colour: 1.0, "wants 'colour'"),
        (lambda: 1.0, "takes no parameter to score"),
    ],
)
async def test_what_gives_no_number_gives_no_score_and_says_why(function, said):
    assert said in await value_of(function)


async def test_one_failure_leaves_the_other_members_scored():
    def picky(answer):
        return 1.0 if answer == "good" else 1 / 0

    scores = await FunctionScorer(picky, "picky").score(group_of("good", "bad"))
    assert [s.value for s in scores] == [1.0, None]


def test_scorers_are_found_by_name(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "def faithful(answer, context):\n    return 1.0\n\n"
        "class Half:\n    async def score(self, group):\n        return []\n"
    )
    assert isinstance(scorer_of("rag"), RagReward)
    assert isinstance(scorer_of(f"{file}:faithful"), FunctionScorer)
    assert type(scorer_of(f"{file}:Half")).__name__ == "Half"
    assert isinstance(scorer_of("groundrule.rewards.handwritten.rag:RagReward"), RagReward)


@pytest.mark.parametrize(
    "name", ["openai/o3", "ollama/qwen3:32b", "http://127.0.0.1:9/v1#m", "local/likelihood"]
)
def test_other_names_are_judges(name):
    found = scorer_of(name)
    assert isinstance(found, Ruler)
    assert found.judge_model == name


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.py:f", "no such Python file"),
        ("no_such_module:f", "cannot be imported"),
        ("groundrule.rewards:nothing", "has no 'nothing'"),
        ("groundrule.rewards:DEFAULT_RUBRIC", "neither a function nor a scorer"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused(name, said):
    with pytest.raises(ConfigError, match=said):
        scorer_of(name)


def test_a_file_that_breaks_is_named_with_its_fault(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("1 / 0")
    with pytest.raises(ConfigError, match=r"bad\.py cannot be imported: ZeroDivisionError"):
        scorer_of(f"{file}:f")


def test_the_weights_of_a_hand_written_reward_are_known():
    assert weights_of(RagReward())["uses_context"] == 0.4
    assert weights_of(Ruler("local/likelihood")) is None

"""The judge of a configuration, its cost, and budgets in a training."""

import pytest

from groundrule._util.aio import run_sync
from groundrule.data.runs import Run
from groundrule.data.score import Score
from groundrule.errors import BudgetError, ConfigError
from groundrule.llm import Budget, Ledger, Price, ScriptedClient
from groundrule.llm.cost import Call
from groundrule.recipes.config import parse_config
from groundrule.recipes.judging import estimate, judge_of, purchase_for_step
from groundrule.recipes.train_rl import train_rl
from groundrule.rewards import Ruler
from groundrule.rewards.checklist import Checklist, Criterion
from groundrule.rewards.economy import LEFT_OUT, CallCost
from groundrule.rewards.handwritten.rag import RagReward
from groundrule.rewards.jury import Juror, Jury
from groundrule.rollouts.scenarios import load_scenarios


def by_number(request):
    """A judge of three answers that likes them in the order shown."""
    return {"scores": [{"trajectory_id": str(i), "explanation": "", "score": i / 10} for i in range(1, 4)]}


def a_ruler(passes: int = 1) -> Ruler:
    return Ruler(ScriptedClient(by_number), passes=passes, gate=False)


def train(config, scorer, said=None):
    return run_sync(train_rl(config, scorer=scorer, report=([] if said is None else said).append))


def test_passes_probes_and_budget_come_from_the_configuration(judge_named):
    judge_named("test", "named_judges:keyword")
    judge = {"model": "test/a", "passes": 4, "max_passes": 8, "min_reliability": 0.7, "canary_rate": 0.5}
    ruler = judge_of(parse_config({"judge": judge, "run": {"seed": 9}}))
    assert (ruler.passes, ruler.max_passes, ruler.min_reliability, ruler.seed) == (4, 8, 0.7, 9)
    assert (ruler.probes.canary_rate, ruler.probes.twin_rate) == (0.5, 0.02)


def test_further_judges_make_a_jury(judge_named):
    judge_named("test", "named_judges:keyword")
    jury = judge_of(
        parse_config(
            {
                "judge": {
                    "model": "test/a",
                    "jury": [{"model": "test/b", "weight": 2.0}, {"model": "test/c", "role": "holdout"}],
                }
            }
        )
    )
    assert isinstance(jury, Jury)
    assert [(j.name, j.weight, j.role) for j in jury.jurors] == [
        ("test/a", 1.0, "score"),
        ("test/b", 2.0, "score"),
        ("test/c", 1.0, "holdout"),
    ]


def test_a_checklist_made_from_another_system_prompt_is_refused(judge_named, tmp_path):
    judge_named("test", "named_judges:keyword")
    path = tmp_path / "list.toml"
    Checklist(criteria=[Criterion(id="a", text="rhymes")], spec_sha256="0" * 64).save(path)
    config = {"judge": {"model": "test/a", "checklist": str(path)}, "policy": {"system": "Rhyme."}}
    with pytest.raises(ConfigError, match="made from another system prompt"):
        judge_of(parse_config(config))


def test_an_unknown_key_of_the_budget_names_the_nearest_one():
    with pytest.raises(ConfigError, match="did you mean 'usd_per_run'"):
        parse_config({"judge": {"budget": {"usd_for_run": 1}}})


def test_the_estimate_counts_calls_tokens_and_money():
    config = parse_config({"judge": {"model": "shop/reader"}})
    ledger = Ledger(prices={"shop/reader": Price(prompt=1.0, completion=10.0)})
    scenarios = load_scenarios("support", split="train")
    expected = estimate(config, Ruler(ScriptedClient([]), passes=2), scenarios, ledger, steps=5)
    assert expected.calls == 40  # 5 steps x 4 groups x 2 passes
    per_call = expected.tokens / 40
    assert 1200 < per_call < 2200
    assert expected.usd == pytest.approx(40 * ((per_call - 640) * 1e-6 + 640 * 10e-6), rel=0.01)


def test_an_unknown_price_is_said_and_never_zero():
    config = parse_config({"judge": {"model": "shop/unknown"}})
    scenarios = load_scenarios("support", split="train")
    expected = estimate(config, Ruler(ScriptedClient([])), scenarios, Ledger(), steps=1)
    assert expected.usd is None
    assert "cost unknown" in str(expected)


def test_a_free_judge_has_no_estimate(judge_named):
    judge_named("test", "named_judges:longest")
    config = parse_config({})
    scenarios = load_scenarios("support", split="train")
    assert estimate(config, Ruler("test/longest"), scenarios, Ledger(), steps=1) is None


def test_the_comparisons_of_a_constitution_are_in_the_estimate(judge_named):
    judge_named("test", "constitutions:named")
    config = parse_config(
        {"judge": {"model": "constitution/customer-support", "params": {"judge": "test/a"}}}
    )
    scenarios = load_scenarios("support", split="train")
    # 2 steps x 4 groups x 28 calls for 7 members: 14 pairs in two orders each.
    config = config.model_copy(update={"train": config.train.model_copy(update={"group_size": 7})})
    assert estimate(config, judge_of(config), scenarios, Ledger(), steps=2).calls == 224


def test_the_mean_of_what_was_spent_replaces_the_estimate():
    ledger = Ledger(budget=Budget(tokens=1000))
    ledger.record(Call("m", "judge/ruler", 90, 10, None, None))
    bought = purchase_for_step(a_ruler(), parse_config({}), ledger, CallCost(1e9, None), step=2, groups=9)
    assert len(bought.groups) == 9


def test_a_short_step_leaves_groups_out_and_says_so(tiny_training, tmp_path):
    config = tiny_training(
        tmp_path / "run",
        steps=1,
        scenarios={"held_out_limit": 0},
        judge={"budget": {"calls_per_step": 1}},
    )
    said: list[str] = []
    train(config, a_ruler(passes=2), said)
    run = Run.open(tmp_path / "run", read_only=True)
    reasons = [{t.unscored for t in group} for group in run.groups(1)]
    assert sorted(reasons, key=str) == [{LEFT_OUT}, {None}]
    line = run.metrics()[0]
    assert (line["judge/degraded"], line["judge/groups_left_out"], line["judge/passes"]) == (1.0, 1.0, 1.0)
    assert any("groups are judged more cheaply, 1 left unscored" in text for text in said)


def test_a_run_stops_at_its_budget_and_goes_on_with_a_larger_one(tiny_training, tmp_path):
    def config(calls: int):
        return tiny_training(
            tmp_path / "run",
            steps=2,
            scenarios={"held_out_limit": 0},
            judge={"budget": {"calls_per_run": calls}},
        )

    with pytest.raises(BudgetError, match="step 2: the judge's budget"):
        train(config(2), a_ruler())
    assert Run.open(tmp_path / "run", read_only=True).step == 1
    train(config(4), a_ruler())
    run = Run.open(tmp_path / "run", read_only=True)
    assert run.step == 2
    assert run.metrics()[-1]["judge/calls_total"] == 4


def test_reliability_reaches_metrics_and_advantages(tiny_training, tmp_path):
    config = tiny_training(tmp_path / "run", steps=1, scenarios={"held_out_limit": 0})
    train(config, a_ruler(passes=2))
    line = Run.open(tmp_path / "run", read_only=True).metrics()[0]
    assert line["judge/reliability"] == 0.0  # The judge likes places only, so order and reverse cancel.
    assert line["train/updated"] == 0


class Picky:
    """Likes answers for their letters, within so wide a part of the scale."""

    def __init__(self, width: float) -> None:
        self.width = width

    async def score(self, group):
        answers = [str(t.messages()[-1]["content"]) for t in group]
        return [Score(value=self.width * (sum(map(ord, answer)) % 11) / 10) for answer in answers]


def test_a_jury_in_an_interrupted_run_is_aligned_as_in_one_that_was_not(tiny_training, tmp_path):
    def rewards(folder, *stops):
        jury = Jury([Juror("wide", Picky(1.0)), Juror("narrow", Picky(0.1))])
        for steps in stops:
            train(tiny_training(folder, steps=steps, scenarios={"held_out_limit": 0}), jury)
        return [group.rewards for group in Run.open(folder, read_only=True).groups(2)]

    in_two_runs = rewards(tmp_path / "two", 1, 2)
    assert in_two_runs == rewards(tmp_path / "one", 2)
    assert any(max(group) > min(group) for group in in_two_runs)  # Else there is nothing to align.


def decides(request):
    """Lists one demand when asked for a list, and finds it met by every other answer."""
    prompt = "\n".join(str(m["content"]) for m in request.messages)
    if "turn the system prompt" in prompt:
        return {"criteria": [{"id": "c1", "text": "is brief", "kind": "avoid", "weight": 1, "veto": False}]}
    said = [{"criterion": "c1", "verdict": "met", "quote": ""}]
    return {"trajectories": [{"trajectory_id": str(i), "verdicts": said} for i in range(1, 4)]}


def test_a_checklist_is_made_once_shown_and_kept_with_the_run(tiny_training, tmp_path):
    client = ScriptedClient(decides)
    ruler = Ruler(client, checklist="auto", gate=False)
    said: list[str] = []
    for steps in (1, 2):
        train(tiny_training(tmp_path / "run", steps=steps, scenarios={"held_out_limit": 0}), ruler, said)
    kept = Checklist.load(tmp_path / "run" / "checklist.toml")
    assert [c.text for c in kept.criteria] == ["is brief"]
    assert said.count("c1 [avoid, weight 1] is brief") == 1
    asked = [
        m["content"]
        for r in client.requests
        for m in r.messages
        if "turn the system prompt" in str(m["content"])
    ]
    assert len(asked) == 1


def test_a_juror_may_be_a_reward_by_hand():
    jury = judge_of(parse_config({"judge": {"jury": [{"model": "rag", "role": "holdout"}]}}))

    assert isinstance(jury.jurors[1].scorer, RagReward)


def test_a_reward_by_hand_takes_no_parameters():
    with pytest.raises(ConfigError, match="'rag' is no judge and takes no parameters; take 'passes' out"):
        judge_of(parse_config({"judge": {"jury": [{"model": "rag", "params": {"passes": 2}}]}}))

"""Reading scenarios from files, and drawing them step by step."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError, DataError
from groundrule.rollouts.scenarios import draw, load_scenarios


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_scenarios(path)
    return str(caught.value).removeprefix(str(path))


def numbered(count: int) -> list[Scenario]:
    return [Scenario(id=str(n), question=f"What is {n}?") for n in range(count)]


def ids(scenarios: list[Scenario]) -> list[str]:
    return [scenario.id for scenario in scenarios]


def test_jsonl_with_every_column_is_read(tmp_path: Path) -> None:
    path = written(
        tmp_path / "faq.jsonl",
        '{"id": "a", "system": "Be brief.", "question": "Open?", "context": "9 to 5.",'
        ' "reference": "Until 5.", "facts": [["5", "five"]], "split": "held-out",'
        ' "metadata": {"shop": "north"}}\n',
    )
    assert load_scenarios(path) == [
        Scenario(
            id="a",
            system="Be brief.",
            question="Open?",
            context="9 to 5.",
            reference="Until 5.",
            facts=(("5", "five"),),
            split="held-out",
            metadata={"shop": "north"},
        )
    ]


def test_csv_with_a_byte_order_mark_and_json_cells_reads_like_jsonl(tmp_path: Path) -> None:
    path = written(
        tmp_path / "faq.csv",
        b"\xef\xbb\xbfquestion,id,facts,metadata,context,split\r\n"
        b'"Open, today?",a,"[[""5"", ""five""]]","{""shop"": ""north""}","Line one\nline two",held-out\r\n',
    )
    assert load_scenarios(path) == [
        Scenario(
            id="a",
            question="Open, today?",
            context="Line one\nline two",
            facts=(("5", "five"),),
            split="held-out",
            metadata={"shop": "north"},
        )
    ]


def test_facts_in_csv_may_be_written_without_json(tmp_path: Path) -> None:
    path = written(tmp_path / "faq.csv", "question,facts\nHow?,30 days|thirty days; by e-mail\n")
    assert load_scenarios(path)[0].facts == (("30 days", "thirty days"), ("by e-mail",))


def test_a_scenario_without_an_id_is_named_after_its_row(tmp_path: Path) -> None:
    path = written(tmp_path / "faq.csv", "id,question\n,One?\n\nmine,Two?\n,Three?\n")
    assert ids(load_scenarios(path)) == ["row-1", "mine", "row-3"]


def test_empty_and_null_cells_count_as_left_out(tmp_path: Path) -> None:
    as_csv = written(tmp_path / "faq.csv", "question,reference,split,facts\nOne?,,,\n")
    as_jsonl = written(tmp_path / "faq.jsonl", '{"question": "One?", "reference": null, "split": ""}')
    expected = [Scenario(id="row-1", question="One?")]
    assert load_scenarios(as_csv) == expected
    assert load_scenarios(as_jsonl) == expected


def test_split_keeps_one_side_in_file_order(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "id,question,split\na,A?,held-out\nb,B?,train\nc,C?,held-out\n")
    assert ids(load_scenarios(path, split="held-out")) == ["a", "c"]
    assert ids(load_scenarios(str(path), split="train")) == ["b"]


def test_built_in_sets_are_known_by_name() -> None:
    assert len(load_scenarios("support")) == 108
    assert load_scenarios("pydoc", split="train")[0].id.startswith("pydoc-")


def test_an_unknown_set_names_the_nearest_one() -> None:
    with pytest.raises(DataError, match=r"suport: no such file \(did you mean 'support'\?\); give the path"):
        load_scenarios("suport")


def test_an_unknown_split_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="split is 'test'; use"):
        load_scenarios("support", split="test")  # type: ignore[arg-type]


def test_other_file_types_and_folders_are_refused(tmp_path: Path) -> None:
    assert refusal(written(tmp_path / "q.json", "[]")) == (
        ": is a file ending in '.json'; scenarios are read from .jsonl or .csv files"
    )
    assert refusal(tmp_path) == ": is a folder; scenarios are read from .jsonl or .csv files"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("q.jsonl", "", ": holds no scenarios"),
        ("q.jsonl", "\n\n", ": holds no scenarios"),
        ("q.csv", "", ": holds no scenarios"),
        ("q.csv", "id,question\n", ": holds no scenarios"),
        (
            "q.jsonl",
            '{"question": "A?"}\n\n{"question": " "}\n',
            ", line 3, column question: the question is empty",
        ),
        ("q.jsonl", '{"id": "a"}\n', ", line 1, column question: the question is empty"),
        ("q.csv", 'id,question\na,"A\n?"\nb,\n', ", line 4, column question: the question is empty"),
        (
            "q.jsonl",
            '{"question": "A?", "contxt": ""}\n',
            ", line 1, column contxt: unknown column (did you mean 'context'?); the columns are: id, system,",
        ),
        ("q.csv", "questions\nA?\n", ", line 1, column questions: unknown column (did you mean 'question'?)"),
        ("q.csv", "question,,\nA?,,\n", ", line 1, column '': the column is there twice"),
        ("q.csv", "id,context\na,b\n", ", line 1, column question: the column is missing"),
        ("q.csv", "id;question\na;A?\n", ", line 1: cells are separated by ';'; save with commas"),
        ("q.csv", "id,question\na,A,B?\n", ", line 2: has 3 cells where the first row names 2 columns"),
        ("q.csv", 'question\n"A?" no\n', ", line 2: is not well-formed CSV"),
        (
            "q.jsonl",
            '{"question": "A?", "id": "a"}\n' * 2,
            ", line 2, column id: 'a' is already the id of the",
        ),
        ("q.csv", "question,split\nA?,test\n", ', line 2, column split: "test" cannot be used'),
        ("q.jsonl", '{"question": ["A?"]}\n', ', line 1, column question: ["A?"] cannot be used'),
        ("q.jsonl", '{"question": "A?", "facts": ["5"]}\n', ', line 1, column facts: ["5"] cannot be used'),
        (
            "q.jsonl",
            '{"question": "A?", "facts": [[]]}\n',
            ", line 1, column facts: a fact or alternative is empty",
        ),
        ("q.csv", "question,facts\nA?,five|\n", ", line 2, column facts: a fact or alternative is empty"),
        ("q.csv", "question,metadata\nA?,north\n", ", line 2, column metadata: the cell is not JSON"),
        ("q.csv", "question,metadata\nA?,[]\n", ", line 2, column metadata: [] cannot be used"),
        ("q.jsonl", '["A?"]\n', ', line 1: holds ["A?"]; write an object such as {"question": "..."}'),
        ("q.jsonl", '{"question": "A?"}\n{"question": "B', ", line 2: is not a whole JSON value"),
        ("q.jsonl", '{"question": "B', ", line 1: is not a whole JSON value"),
    ],
)
def test_a_faulty_file_is_refused_with_the_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    assert refusal(written(tmp_path / name, text)).startswith(message)


def test_every_refusal_of_a_value_ends_with_a_remedy(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", "question,split\nA?,test\n")
    assert refusal(path).endswith('; write "train" or "held-out"')


@pytest.mark.parametrize("name", ["q.csv", "q.jsonl"])
def test_a_file_in_another_encoding_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, b'{"question": "A?"}\n{"question": "caf\xe9?"}\n')
    assert "line 2" in refusal(path)
    assert refusal(path).endswith("byte 0xe9 is not UTF-8; save the file as UTF-8")


def test_an_epoch_draws_every_scenario_once() -> None:
    scenarios = numbered(6)
    drawn = [ids(draw(scenarios, step, 2, seed=7)) for step in (1, 2, 3)]
    assert sorted(drawn[0] + drawn[1] + drawn[2]) == ["0", "1", "2", "3", "4", "5"]


def test_each_epoch_and_each_seed_has_an_order_of_its_own() -> None:
    scenarios = numbered(20)
    assert ids(draw(scenarios, 1, 20, seed=0)) != ids(draw(scenarios, 2, 20, seed=0))
    assert ids(draw(scenarios, 1, 20, seed=0)) != ids(draw(scenarios, 1, 20, seed=1))


def test_a_draw_does_not_depend_on_earlier_draws_or_on_the_day() -> None:
    assert ids(draw(numbered(5), 3, 3, seed=11)) == ["3", "1", "4"]


def test_steps_run_on_across_the_end_of_an_epoch() -> None:
    scenarios = numbered(5)
    in_threes = [s for step in range(1, 6) for s in draw(scenarios, step, 3, seed=2)]
    at_once = draw(scenarios, 1, 15, seed=2)
    assert ids(in_threes) == ids(at_once)


@pytest.mark.parametrize(
    ("scenarios", "step", "count", "message"),
    [
        ([], 1, 1, "there are no scenarios"),
        (numbered(2), 0, 1, "step is 0, but must be 1 or more"),
        (numbered(2), 1, 0, "count is 0, but must be 1 or more"),
    ],
)
def test_a_draw_that_cannot_work_says_why(
    scenarios: list[Scenario], step: int, count: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        draw(scenarios, step, count, seed=0)

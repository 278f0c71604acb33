"""Constitutions: their files, what is wrong in them, and how principles are drawn."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pydantic import ValidationError

from constitutions import THREE, principle
from groundrule.errors import ConfigError, DataError
from groundrule.rewards import Constitution
from groundrule.rewards.constitution.principles import ready_names

FILE = '''# Two principles.
name = "shop"

[[principles]]
id = "brief"
critique_request = """
weight = "not a key"
[[principles]]
"""
revision_request = "Shorten it."
comparison_question = "Which is shorter?"

[[principles]]
id = "kind"
critique_request = "Where is it unkind?"
revision_request = "Be kind."
comparison_question = "Which is kinder?"
weight = 2
tags = ["tone"]
'''


def written(folder: Path, text: str) -> Path:
    path = folder / "shop.toml"
    path.write_text(text)
    return path


def test_a_file_is_read(tmp_path):
    found = Constitution.load(written(tmp_path, FILE))
    assert (found.name, found.ids) == ("shop", ("brief", "kind"))
    assert (found.principles[1].weight, found.principles[1].tags) == (2.0, ("tone",))


def test_without_a_name_it_is_called_after_its_file(tmp_path):
    assert Constitution.load(written(tmp_path, FILE.replace('name = "shop"', ""))).name == "shop"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weight = 2", "wieght = 2", "line 18, column wieght: unknown key; did you mean 'weight'?"),
        ("weight = 2", "zzz = 2", "line 18, column zzz: unknown key; known here: id, critique_request,"),
        ("weight = 2", "weight = 0", "line 18, column weight: is 0: Input should be greater than 0"),
        ("weight = 2", "weight = -1.5", "line 18, column weight: is -1.5: Input should be greater than 0"),
        ("weight = 2", "weight = inf", "line 18, column weight: is inf: Input should be a finite number"),
        ('"kind"', '"brief"', "line 14, column id: 'brief' is already the id of principle 1; give each its own"),
        ('"Be kind."', '"  "', "line 16, column revision_request: is empty; write its text"),
        ('id = "kind"', "", "line 13, column id: is missing; every table of [[principles]] needs it"),
        ('name = "shop"', 'nam = "shop"', "line 2, column nam: unknown key; did you mean 'name'?"),
        ("weight = 2", "weight 2", "line 18: is not TOML: Expected '=' after a key in a key/value pair"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named_with_its_line(tmp_path, old, new, said):
    path = written(tmp_path, FILE.replace(old, new))
    with pytest.raises(DataError) as refused:
        Constitution.load(path)
    assert str(refused.value).startswith(f"{path}, {said}")


def test_a_file_without_principles_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"holds no principles; add a \[\[principles\]\] table"):
        Constitution.load(written(tmp_path, 'name = "shop"\n'))


def test_an_exemplar_of_a_principle_that_is_not_there_is_refused(tmp_path):
    exemplar = (
        '[[exemplars]]\nprompt = "p"\nanswer = "a"\nprinciple = "kin"\ncritique = "c"\nrevision = "r"\n'
    )
    with pytest.raises(
        DataError,
        match=r"line 23, column principle: 'kin' is the id of no principle; did you mean 'kind'\?",
    ):
        Constitution.load(written(tmp_path, FILE + exemplar))


def test_a_name_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(
        ConfigError, match=r"'customer-suport' cannot be read .*did you mean 'customer-support'\?"
    ):
        Constitution.load("customer-suport")


@pytest.mark.parametrize(("name", "least"), [("helpful-honest-harmless", 16), ("customer-support", 8)])
def test_the_ready_ones_can_be_loaded(name, least):
    found = Constitution.load(name)
    assert name in ready_names()
    assert (found.name, len(found.principles) >= least, len(found.exemplars)) == (name, True, 1)


def test_a_constitution_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        THREE.principles[0].weight = 3.0


def test_the_hash_is_that_of_the_content_and_not_of_the_name():
    renamed = THREE.model_copy(update={"name": "other"})
    heavier = Constitution(name="three", principles=(principle("a", 2.0),))
    assert THREE.content_hash == "76ce3fb7ec6bb345"
    assert Constitution(**renamed.model_dump()).content_hash == THREE.content_hash
    assert heavier.content_hash != Constitution(name="three", principles=(principle("a"),)).content_hash


def test_draws_are_decided_by_what_they_are_for():
    assert [p.id for p in THREE.draw(7, "some prompt")] == ["c", "a", "b", "a", "c", "b", "c"]
    assert [p.id for p in THREE.draw(7, "another")] == ["b", "c", "a", "c", "a", "b", "b"]
    assert THREE.draw(7, "some prompt")[4:] == THREE.draw(3, "some prompt", start=4)


def test_none_is_drawn_twice_before_all_were_drawn_once():
    for what in range(50):
        drawn = [p.id for p in THREE.draw(6, what)]
        assert sorted(drawn[:3]) == sorted(drawn[3:]) == ["a", "b", "c"]


def test_the_heavier_are_drawn_sooner_as_often_as_they_weigh():
    first = Counter(THREE.draw(1, number)[0].id for number in range(4000))
    assert first == {"c": 2009, "a": 1021, "b": 970}


def test_tags_choose_a_part():
    assert THREE.with_tags(["y"]).ids == ("b",)
    assert THREE.with_tags([]) is THREE
    with pytest.raises(ConfigError, match="no principle of three has the tag 'z'; its tags are x, y"):
        THREE.with_tags(["z"])

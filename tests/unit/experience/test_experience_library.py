"""The library learns: cited cards gain or lose, steps become cards, failures become warnings, and all of it travels as one file."""

import dataclasses

import pytest
from test_experience_cards import rms

from workbench.brief import Parent
from workbench.candidate import Candidate, Diagnosis, Environment, Evaluation, Timing, Verdict
from workbench.errors import MisuseError
from workbench.knowledge.experience import Card, Library, Trigger, effect_of
from workbench.knowledge.experience.index import TextIndex

OLD = "import triton\n\n\n@triton.jit\ndef k(x):\n    a = 1\n    b = 2\n    return a\n\n\ndef f(x):\n    return k[(1,)](x)\n"
NEW = OLD.replace("    b = 2\n", "    b = 3\n")


def evaluation(us=None, verdict=Verdict.RIGHT, modelled=True, **more):
    timing = None if us is None else Timing(us, us, us, us, us, modelled=modelled)
    return Evaluation("k1.0", "k1", "t", verdict, timing=timing, environment=Environment(triton="3.7.1"), **more)


def candidate(name="k2", source=NEW, **more):
    return Candidate(name, "triton", source, "f", plan="three in place of two", proposer="llm:m", **more)


def parent(us=20.0, verdict=Verdict.RIGHT, kind="memory", **more):
    return Parent(candidate("k1", OLD), evaluation(us, verdict, **more), Diagnosis("k1.0", kind, "memory bound", "read once"))


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (evaluation(20.0), evaluation(10.0), 1.0),
        (evaluation(20.0), evaluation(25.0), -0.2),
        (evaluation(20.0), evaluation(verdict=Verdict.WRONG), -1.0),
        (evaluation(20.0), evaluation(verdict=Verdict.NOT_JUDGED), None),
        (evaluation(20.0), evaluation(10.0, modelled=False), None),
        (evaluation(verdict=Verdict.WRONG), evaluation(10.0), 1.0),
        (evaluation(verdict=Verdict.WRONG), evaluation(verdict=Verdict.WRONG), -1.0),
        (evaluation(verdict=Verdict.DOES_NOT_BUILD), evaluation(verdict=Verdict.WRONG), 0.0),
        (evaluation(verdict=Verdict.NOT_JUDGED), evaluation(10.0), None),
        (evaluation(), evaluation(10.0), None),
    ],
)
def test_an_effect_is_signed_and_comes_from_like_and_like(before, after, effect):
    found = effect_of(before, after)
    assert found == (effect if effect is None else pytest.approx(effect))


def test_a_cited_card_is_reinforced_or_weakened_at_once():
    library = Library.shipped()
    before = library.card("row-in-registers").confidence
    library.reinforce("row-in-registers", 0.5)
    better = library.card("row-in-registers")
    assert better.confidence > before and better.effect == 0.5 and better.trials == 1
    library.reinforce("row-in-registers", -0.1)
    mixed = library.card("row-in-registers")
    assert mixed.effect == pytest.approx(0.2) and mixed.confidence < better.confidence
    for _ in range(20):
        library.reinforce("row-in-registers", -0.5)
    assert library.card("row-in-registers").confidence < 0.2
    library.reinforce("an-expert", 1.0)
    assert "an-expert" not in library


def test_reinforcement_changes_what_is_retrieved():
    library = Library.shipped()
    asked = (rms(), Diagnosis("e", "memory", "memory bound", "read the row once"), None, 3)
    first = library.retrieve(*asked)[0].id
    for _ in range(30):
        library.reinforce(first, -0.5)
    assert library.retrieve(*asked)[0].id != first


def test_retrieval_is_deterministic_and_leaves_the_library_as_it_is():
    library = Library.shipped()
    before = library.dumps()
    asked = (rms(), Diagnosis("e", "memory", "memory bound", "read once"), None, 5)
    assert library.retrieve(*asked) == library.retrieve(*asked) == Library(library.cards[::-1]).retrieve(*asked)
    assert library.dumps() == before and len(library.retrieve(*asked)) <= 5


def test_a_step_that_helps_becomes_a_card_that_is_found_again():
    library = Library.shipped()
    made = library.add(rms(), parent(20.0), candidate(), evaluation(10.0))
    assert made.effect == 1.0 and made.modelled and made.trials == 1 and not made.is_negative
    assert "-    b = 2\n+    b = 3" in made.code and made.advice == "three in place of two"
    assert made.trigger == Trigger(kinds=("normalization", "reduction"), axes=("last",), diagnoses=("memory",))
    assert made.measured_on == "modelled for cuda:90, triton 3.7.1" and made.source == "llm:m k2"
    shown = made.shown()
    assert shown.effect == "2.00× as fast, modelled 1 time" and shown.id.startswith("x-") and "+    b = 3" in shown.advice
    found = library.retrieve(rms(), Diagnosis("e", "memory", "memory bound", "three in place of two"), None, 3)
    assert made.id in [card.id for card in found]
    assert made.id not in [card.id for card in library.retrieve(rms(), Diagnosis("e", "spills", "", ""), None, 50)]


@pytest.mark.parametrize(
    ("after", "says"),
    [
        (evaluation(30.0), "did not help: three in place of two"),
        (evaluation(verdict=Verdict.WRONG, reason="170 elements differ"), "did not help: three in place of two (170 elements differ)"),
    ],
)
def test_a_step_that_fails_or_is_slower_becomes_a_warning(after, says):
    made = Library().add(rms(), parent(20.0), candidate(), after)
    assert made.is_negative and made.advice == says
    assert ("did not work" in made.shown().effect) == (made.effect == -1.0)
    assert made.tried(0.5).is_negative and made.tried(0.5).confidence > made.tried(-0.5).confidence


def test_a_repair_becomes_a_card_for_that_failure():
    made = Library().add(rms(), parent(None, Verdict.WRONG, "mismatch"), candidate(), evaluation(10.0))
    assert made.effect == 1.0 and made.trigger.diagnoses == ("mismatch",)


@pytest.mark.parametrize(
    ("child", "after"),
    [
        (candidate(), evaluation(20.5)),
        (candidate(), evaluation(verdict=Verdict.NOT_JUDGED)),
        (candidate(source=OLD), evaluation(10.0)),
        (dataclasses.replace(candidate(source="\n".join(f"line {n}" for n in range(90))), plan=""), evaluation(10.0)),
    ],
    ids=["no change in time", "not judged", "same source", "long diff without a plan"],
)
def test_what_teaches_nothing_makes_no_card(child, after):
    library = Library()
    assert library.add(rms(), parent(20.0), child, after) is None and len(library) == 0


def test_a_long_diff_keeps_its_plan_alone():
    made = Library().add(rms(), parent(20.0), candidate(source="\n".join(f"line {n}" for n in range(90))), evaluation(10.0))
    assert made.code == "" and made.advice == "three in place of two"


def test_the_same_step_again_reinforces_its_card():
    library = Library()
    first = library.add(rms(), parent(20.0), candidate(), evaluation(10.0))
    again = library.add(rms("float32"), parent(20.0), candidate("k9"), evaluation(16.0))
    assert again.id == first.id and again.trials == 2 and again.effect == pytest.approx(0.625) and len(library) == 1


def test_learning_does_both_at_once():
    library = Library.shipped()
    child = candidate(cites=("evict-first", "rms_norm"))
    changed = library.learn(rms(), (parent(20.0),), child, evaluation(10.0))
    assert changed[0] == "evict-first" and changed[1].startswith("x-") and library.card("evict-first").trials == 1
    assert library.learn(rms(), (), child, evaluation(10.0)) == ()
    assert library.learn(rms(), (parent(20.0), parent(30.0)), child, evaluation(10.0)) == ("evict-first",)


def test_warnings_are_at_most_a_third():
    trigger = Trigger(kinds=("normalization",))
    warnings = [Card(f"w{n}", trigger, f"did not help: normalization number {n}", effect=-0.5, prior=0.9) for n in range(6)]
    advice = [Card(f"a{n}", trigger, "something else", prior=0.1) for n in range(6)]
    found = Library([*warnings, *advice]).retrieve(rms(), None, None, 6)
    assert [card.id[0] for card in found].count("w") == 2 and len(found) == 6


def test_one_file_carries_it_all(tmp_path):
    library = Library.shipped()
    library.add(rms(), parent(20.0), candidate(), evaluation(10.0))
    library.reinforce("evict-first", 0.25)
    library.export_file(tmp_path / "experience.json")
    other = Library.shipped()
    assert other.import_file(tmp_path / "experience.json") == 2
    assert other.import_file(tmp_path / "experience.json") == 0
    assert other.card("evict-first") == library.card("evict-first") and set(other.cards) == set(library.cards)
    assert Library.loads(library.dumps()).cards == library.cards


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cards": []}', '{"cards": [{"id": "x"}]}', '{"cards": 3}', "\x00"])
def test_a_file_that_is_none_of_ours_is_refused_in_one_line(text, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(MisuseError, match="no experience file") as caught:
        Library().import_file(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(MisuseError, match="can't be read"):
        Library().import_file(tmp_path / "absent.json")


def test_forgetting_drops_what_is_least_trusted_and_keeps_the_shipped():
    library = Library.shipped()
    shipped = len(library)
    for number in range(5):
        library.add(rms(), parent(20.0), candidate(source=NEW + f"# {number}\n"), evaluation(10.0))
    worst = library.cards[-1].id
    library.reinforce(worst, -1.0)
    assert library.forget(shipped + 4) == 1 and worst not in library
    assert library.forget(3) == 4 and len(library) == shipped


def test_relevance_stems_and_takes_any_text():
    texts = {"a": "row reductions in registers", "b": "matrix product", "c": ""}
    assert TextIndex().relevance(texts, "reduce a row") == {"a": 1.0, "b": 0.0, "c": 0.0}
    for query in ("", "the of", '") OR * NEAR(', "AND OR NOT", "body:matrix", "日本 é", "'; DROP TABLE cards; --"):
        assert set(TextIndex().relevance(texts, query)) == set(texts)
    assert TextIndex().relevance(texts, "AND matrix OR")["b"] == 1.0 and TextIndex().relevance({}, "row") == {}


def test_the_index_follows_texts_that_come_change_and_go():
    index = TextIndex()
    texts = {"a": "row reductions", "b": "matrix product", "c": "row by row, a reduction"}
    assert index.relevance(texts, "reduce rows") == TextIndex().relevance(texts, "reduce rows")
    changed = {"b": "a reduction of rows", "c": texts["c"], "d": "rows of tiles"}
    for query in ("reduce rows", "tile", "matrix"):
        assert index.relevance(changed, query) == TextIndex().relevance(changed, query)


def test_a_warning_shows_its_code_only_where_its_author_said_nothing():
    library = Library(())
    helped = library.add(rms(), parent(20.0), dataclasses.replace(candidate(), plan="one program a row"), evaluation(10.0))
    warned = library.add(rms(), parent(20.0), dataclasses.replace(candidate(source=NEW + "# a\n"), plan="two rows"), evaluation(40.0))
    wordless = library.add(rms(), parent(20.0), dataclasses.replace(candidate(source=NEW + "# b\n"), plan=""), evaluation(40.0))
    assert helped.shown().advice.split("\n")[0] == "one program a row" and "+" in helped.shown().advice
    assert warned.shown().advice == "did not help: two rows"
    assert wordless.shown().advice.startswith("did not help: this change\n")

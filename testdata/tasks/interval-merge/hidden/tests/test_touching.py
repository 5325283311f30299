import json
import pathlib

import pytest

from intervals.cases import run
from intervals.intervalset import IntervalSet
from intervals.parsing import parse, parse_all
from intervals.schedule import agenda

CASES = json.loads((pathlib.Path(__file__).parent / "data" / "touching.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_case(case):
    assert run(case) == case["expected"]


def test_set_of_neighbours_is_one_interval():
    assert len(IntervalSet("[1, 3) [3, 5]")) == 1


def test_set_operations_join():
    assert str(IntervalSet("[1, 3)") | IntervalSet("[3, 5)")) == "[1, 5)"


def test_back_to_back_agenda():
    assert agenda(parse_all("[540, 600) [600, 660)")) == ["09:00-11:00"]


def test_hull_keeps_the_closed_end():
    assert str(parse("[1, 5)").hull(parse("[2, 5]"))) == "[1, 5]"

"""What ``make check`` runs: some of every room's tests, the same on every machine."""

from __future__ import annotations

import pytest

from .conftest import quick


def test_every_folder_has_quick_tests(request):
    items = [i for i in request.session.items if i.get_closest_marker("long") is None]
    assert {item.path.parent for item in quick(items)} == {item.path.parent for item in items}


@pytest.mark.parametrize("number", range(9))
def test_a_test_is_run_with_a_few_parameters_from_the_first_to_the_last(number, request):
    name = request.node.nodeid.partition("[")[0]
    every = [item for item in request.session.items if item.nodeid.startswith(name)]
    kept = quick(every)
    assert len(kept) == min(6, len(every))
    assert (kept[0], kept[-1]) == (every[0], every[-1])
    assert quick(kept) == kept

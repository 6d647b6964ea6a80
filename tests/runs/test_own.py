"""What a run names of the user's own: told apart by digests, without importing it."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys

import pytest

from noiseproof import UsageError
from noiseproof._imports import load
from noiseproof.runs import ResolvedRun, Run

NETS = "raise SystemExit('imported')\ndef small(num_classes): ...\n"
LOSSES = """
from noiseproof.losses import register

@register
def spread(logits):
    return 1 - logits.softmax(1)

def f(logits, labels): ...
"""


def test_a_network_is_told_apart_by_its_source(own_modules):
    folder = own_modules(mynets=NETS)
    run = Run(model="mynets:small")
    first = run.resolve()
    name, _, digest = first.model.partition("@")
    assert (name, len(digest)) == ("mynets:small", 10)
    assert first.overrides == ()
    assert dict(first.paths) == {"import mynets": str(folder)}
    own_modules(mynets=NETS + "# better\n")
    assert run.resolve().hash != first.hash
    own_modules(mynets=NETS)
    assert run.resolve() == first
    assert Run(model=first.model).resolve() == first
    assert ResolvedRun.from_settings(first.settings()) == first
    assert pickle.loads(pickle.dumps(first)).paths == first.paths
    assert "mynets" not in sys.modules


def test_nothing_is_imported_to_find_it(own_modules):
    folder = own_modules(mynets=NETS, pkg__=NETS, pkg__nets=NETS)
    code = (
        "import sys; from noiseproof.runs import Run\n"
        "for name in ('mynets:small', 'pkg.nets:small', 'pkg:small'):\n"
        "    run = Run(model=name, loss='mynets:f').resolve(); run.hash, run.method, str(run)\n"
        "sys.exit(bool({'torch', 'mynets', 'pkg', 'pkg.nets'} & sys.modules.keys()))"
    )
    # -P: the current folder is not on the path, as for the command noiseproof
    assert subprocess.run([sys.executable, "-P", "-c", code], cwd=folder).returncode == 0


def test_a_package_is_all_its_files(own_modules):
    own_modules(pkg__="from .nets import small\n", pkg__nets="def small(): ...\n")
    whole, part = (Run(model=name).resolve().hash for name in ("pkg:small", "pkg.nets:small"))
    own_modules(pkg__="from .nets import small  # it\n")
    assert Run(model="pkg.nets:small").resolve().hash == part
    assert Run(model="pkg:small").resolve().hash != whole
    own_modules(pkg__="from .nets import small\n", pkg__nets="def small(): pass\n")
    assert Run(model="pkg.nets:small").resolve().hash != part
    assert Run(model="pkg:small").resolve().hash != whole


def test_libraries_go_by_their_names():
    assert Run(model="torchvision:resnet18").resolve().model == "torchvision:resnet18"
    assert Run(model="timm:vit_tiny").resolve().model == "timm:vit_tiny"


def test_a_loss_by_its_place(own_modules):
    own_modules(mylosses=LOSSES)
    run = Run(loss="mylosses:f", weight_decay=0.1).resolve()
    assert run.loss.startswith("mylosses:f@")
    assert (run.overrides, run.method, run.weight_decay, run.l1) == ((), "mylosses:f", 0.1, 0.0)
    assert run.means("mylosses:f")
    assert run.means(run.loss)
    assert not run.means("mylosses:g")
    assert not run.means("ce")
    assert not Run().resolve().means("mylosses:f")
    assert Run(loss="mylosses:f").note() == ""


def test_imported_losses_are_told_apart_and_need_no_name(own_modules):
    own_modules(mylosses=LOSSES)
    run = Run(loss="NCE + normalize(spread)", imports=["mylosses"])
    assert run.note() == ""
    first = run.resolve()
    assert (first.loss, first.overrides) == ("nce + normalize(spread)", ())
    assert [name.partition("@")[0] for name in first.imports] == ["mylosses"]
    assert first.method == "NCE+normalize(spread)"
    own_modules(mylosses=LOSSES.replace("1 -", "2 -"))
    second = run.resolve()
    assert second.hash != first.hash
    spread = load(second.imports[0], "import").spread  # the changed module was imported anew
    import torch

    assert spread(torch.zeros(1, 2)).tolist() == [[1.5, 1.5]]


def test_what_a_run_does_without_is_no_part_of_it(own_modules):
    own_modules(mylosses=LOSSES, mynets=NETS)
    assert Run(loss="ce", imports=["mylosses"]).resolve() == Run(loss="ce").resolve()
    assert Run(model="mynets:small", imports="mylosses").resolve().imports != ()


def test_a_loss_that_another_module_registered_still_needs_a_name(own_modules):
    own_modules(mylosses=LOSSES, helper="import mylosses\n", mynets=NETS)
    assert Run(loss="spread", imports=["helper"]).resolve().overrides == ("loss",)
    assert Run(loss="spread", imports=["helper", "mylosses"]).resolve().overrides == ()


def test_a_label_is_the_same_where_the_module_is_not_imported(own_modules):
    own_modules(mylosses=LOSSES)
    run = Run(loss="nce + rce(A=-4) + spread", imports=["mylosses"]).resolve()
    code = (
        "import json, sys; from noiseproof.runs import ResolvedRun\n"
        "print(ResolvedRun.from_settings(json.loads(sys.argv[1])).method)"
    )
    import json

    arguments = [sys.executable, "-c", code, json.dumps(run.settings())]
    found = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.strip()
    assert found == run.method == "NCE+spread+RCE"


def test_weights_are_told_apart_by_their_content(tmp_path):
    (tmp_path / "a.pt").write_bytes(b"one")
    first = Run(weights=tmp_path / "a.pt").resolve()
    assert first.weights.startswith("a.pt@")
    assert first.place("weights") == str(tmp_path / "a.pt")
    (tmp_path / "there").mkdir()
    shutil.copy(tmp_path / "a.pt", tmp_path / "there")
    assert Run(weights=str(tmp_path / "there" / "a.pt")).resolve() == first
    (tmp_path / "a.pt").write_bytes(b"other")
    assert Run(weights=str(tmp_path / "a.pt")).resolve().hash != first.hash != Run().resolve().hash


def test_frozen_layers_in_any_order():
    one, two = Run(freeze=["b.*", "a.*"]).resolve(), Run(freeze=("a.*", "b.*", "a.*")).resolve()
    assert one == two
    assert one.settings()["freeze"] == ["a.*", "b.*"]
    assert Run(freeze="a.*").resolve().hash != one.hash
    assert one.pack_key != Run().resolve().pack_key


MISTAKES = [
    ({"model": "nosuch:f"}, r"model nosuch:f: there is no module 'nosuch', neither in .* start in"),
    ({"model": "pkg.nosuch:f"}, "there is no module 'pkg.nosuch'"),
    ({"model": "mynets.nosuch:f"}, "there is no module 'mynets.nosuch'"),
    ({"model": "./mynets.py:small"}, r"is a path; write 'mynets:small', and start in the folder"),
    ({"model": "mynets:"}, "model 'mynets:' cannot be read; write it as 'mymodule:name'"),
    ({"model": "mynets:a b"}, "cannot be read"),
    ({"model": "shutil:rmtree"}, "shutil is Python's own; name a module of yours"),
    ({"model": "__main__:f"}, "__main__ is Python's own"),
    ({"model": "mynets:small@0123456789"}, "mynets has changed since, it is now @"),
    ({"loss": "nce + mylosses:f"}, "in a longer text losses go by the names of @register"),
    ({"imports": ["mylosses:f"]}, "import 'mylosses:f' cannot be read; write it as 'mymodule'"),
    ({"imports": ["nosuch"]}, "import nosuch: there is no module 'nosuch'"),
    ({"imports": [3]}, r"imports is a list of texts; it was \[3\]"),
    ({"imports": ["broken"]},
     r"broken cannot be imported: ModuleNotFoundError: .*'nosuch' \(broken.py, line 2\); mend it"),
    ({"imports": ["leaving"]}, "leaving cannot be imported: SystemExit: 3"),
    ({"imports": ["unreadable"]}, r"SyntaxError: .*\(unreadable.py, line 1\)"),
    ({"freeze": {}}, "freeze is a list of texts"),
    ({"weights": 3}, "weights must be a text; it was 3"),
    ({"weights": "nosuch.pt"}, "weights: there is no file 'nosuch.pt'"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "message"), MISTAKES)
def test_a_mistake_is_one_clear_line(own_modules, settings, message):
    own_modules(
        mynets=NETS, mylosses=LOSSES, pkg__="", broken="\nimport nosuch\n",
        leaving="raise SystemExit(3)\n", unreadable="def (\n",
    )  # fmt: skip
    with pytest.raises(UsageError, match=message) as caught:
        Run(**settings).resolve()
    assert "\n" not in str(caught.value)

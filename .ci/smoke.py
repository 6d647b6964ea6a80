"""What an installed package must do, from any folder and with nothing but its wheel."""

import subprocess
import sys
from importlib.metadata import requires
from importlib.resources import files

import torch

import noiseproof

assert "site-packages" in str(noiseproof.__file__), f"not the installed one: {noiseproof.__file__}"
assert (files("noiseproof") / "py.typed").is_file()
assert {"torch", "numpy", "tyro", "rich", "filelock"} <= {
    r.split(">")[0] for r in requires("noiseproof") or ()
}

logits = torch.randn(8, 10, requires_grad=True)
loss = noiseproof.parse("10*nce + 0.1*rce(A=-4)")
loss(logits, torch.randint(10, (8,))).backward()
assert logits.grad is not None
assert bool(torch.isfinite(logits.grad).all())

listed = subprocess.run(
    [sys.executable, "-m", "noiseproof", "losses"], capture_output=True, text=True, check=True
)
assert all(name in listed.stdout for name in ("nce", "rce", "active", "passive"))
# What travels in the wheel beside code: the digits, the published figures, the page's templates.
result = noiseproof.train.fit(noiseproof.train.Run(epochs=5, device="cpu"))
assert result.accuracy > 0.5
assert noiseproof.results.published()
assert (files("noiseproof") / "report" / "templates" / "page.html.j2").is_file()
assert (files("noiseproof") / "tools" / "templates").is_dir()
assert noiseproof.recommend([0, 1, 2] * 500).loss
probabilities = torch.eye(3)[[0, 1, 2] * 20] * 0.7 + 0.1
found = noiseproof.tools.audit(probabilities, [1, *([0, 1, 2] * 20)[1:]])
assert found.suspects(1)[0].suggested == "0", found
for command in (
    ["recommend", "--dataset", "digits"],
    *([name, "--help"] for name in ("choose", "tune", "audit", "export", "predict")),
    ["bench", "--list"],
    ["train", "--help"],
    ["results", "--help"],
    ["report", "--help"],
):
    subprocess.run([sys.executable, "-m", "noiseproof", *command], capture_output=True, check=True)

print(f"noiseproof {noiseproof.__version__} works with torch {torch.__version__}")

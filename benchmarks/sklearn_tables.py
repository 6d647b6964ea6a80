"""RobustClassifier beside scikit-learn's own classifiers on tables with wrong labels.

    python benchmarks/sklearn_tables.py [--data wine ...] [--save]

Three tables that come with scikit-learn and one of 20 classes that it makes; a fraction of the
training labels goes to any other class. Accuracy is measured on clean test labels, 30 % of the
table, over three splits, and every classifier is as it comes: nothing is tuned. The perceptron and
logistic regression are given standardized features, which RobustClassifier makes by itself;
``standardize=False`` shows what they are worth. Times are the processor's in ``fit`` on one thread
(``OMP_NUM_THREADS=1``), as multiples of ``MLPClassifier``'s on the same labels, the median over all
fits on a table. ``--save`` writes benchmarks/sklearn_tables.csv, from which the tables in
docs/trainers/sklearn.md are made. It takes some minutes on one core.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import sklearn
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import save

from noiseproof import noise
from noiseproof.integrations.sklearn import RobustClassifier

RATES = (0.0, 0.2, 0.4)
SEEDS = (10, 11, 12)  # the defaults were chosen on other splits
PEER = "MLPClassifier"


def made() -> Any:
    return make_classification(
        4000, 32, n_informative=16, n_redundant=0, n_classes=20, n_clusters_per_class=1,
        class_sep=1.5, flip_y=0, random_state=1,
    )  # fmt: skip


TABLES: dict[str, Callable[[], Any]] = {
    "digits": lambda: load_digits(return_X_y=True),
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "20 classes": made,
}

CLASSIFIERS: dict[str, Callable[[int], Any]] = {
    "RobustClassifier()": lambda seed: RobustClassifier(random_state=seed),
    "RobustClassifier(loss='gce')": lambda seed: RobustClassifier(loss="gce", random_state=seed),
    "RobustClassifier(loss='ce')": lambda seed: RobustClassifier(loss="ce", random_state=seed),
    "RobustClassifier(early_stopping=True)": lambda seed: RobustClassifier(
        early_stopping=True, random_state=seed
    ),
    "RobustClassifier(standardize=False)": lambda seed: RobustClassifier(
        standardize=False, random_state=seed
    ),
    PEER: lambda seed: make_pipeline(StandardScaler(), MLPClassifier(random_state=seed)),
    "MLPClassifier(early_stopping=True)": lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier(early_stopping=True, random_state=seed)
    ),
    "LogisticRegression": lambda seed: make_pipeline(StandardScaler(), LogisticRegression()),
    "RandomForestClassifier": lambda seed: RandomForestClassifier(random_state=seed),
    "HistGradientBoostingClassifier": lambda seed: HistGradientBoostingClassifier(
        random_state=seed
    ),
}


def measure(table: str) -> dict[tuple[str, float], tuple[list[float], list[float]]]:
    """By classifier and rate: accuracies, and fit times as multiples of the peer's."""
    X, y = TABLES[table]()
    found: dict[tuple[str, float], tuple[list[float], list[float]]] = {}
    for rate in RATES:
        for seed in SEEDS:
            X_train, X_test, clean, y_test = train_test_split(
                X, y, test_size=0.3, stratify=y, random_state=seed
            )
            noisy = noise.symmetric(clean, rate, num_classes=int(y.max()) + 1, seed=seed).labels
            seconds = {}
            for name, make in CLASSIFIERS.items():
                classifier = make(seed)
                start = time.process_time()
                classifier.fit(X_train, noisy)
                seconds[name] = time.process_time() - start
                cell = found.setdefault((name, rate), ([], []))
                cell[0].append(100 * classifier.score(X_test, y_test))
            for name in CLASSIFIERS:
                found[name, rate][1].append(seconds[name] / seconds[PEER])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # the perceptron's 200 epochs as it comes
    RobustClassifier(epochs=1).fit(*load_wine(return_X_y=True))  # what is imported by the first one
    rows = []
    for table in given.data:
        found = measure(table)
        print(f"\n{table}: accuracy at {', '.join(f'{rate:.0%}' for rate in RATES)} wrong; time")
        for name in CLASSIFIERS:
            ratio = statistics.median(r for rate in RATES for r in found[name, rate][1])
            means = [statistics.mean(found[name, rate][0]) for rate in RATES]
            print(
                f"{name:38} {'  '.join(f'{mean:5.1f}' for mean in means)}  {ratio:6.2f}", flush=True
            )
            for rate, mean in zip(RATES, means, strict=True):
                rows.append(
                    {
                        "data": table, "rate": f"{rate:g}", "classifier": name,
                        "accuracy_percent": f"{mean:.2f}",
                        "deviation": f"{statistics.stdev(found[name, rate][0]):.2f}",
                        "times_mlp": f"{ratio:.2f}", "seeds": len(SEEDS),
                        "threads": torch.get_num_threads(), "sklearn": sklearn.__version__,
                        "torch": torch.__version__, "python": platform.python_version(),
                    }
                )  # fmt: skip
    if given.save:
        save(__file__, rows, beside="data")


if __name__ == "__main__":
    main()

"""What there is to choose from: data sets, kinds of noise, networks and methods. Without torch.

Choices and checks, defaults, benches, the tables of the documentation and the labels of reports
follow from these tables.
"""

from ._auto import AUTO, AUTO_BRINGS, auto_brings, auto_note, auto_setting
from ._datasets import DATASETS, PROTOCOLS, DatasetEntry, Protocol, dataset_title, protocol_of
from ._files import FileSet
from ._labels import is_active_passive, label_of, rank_of
from ._lists import ImageLists
from ._lookup import method_named, no_settings, no_text, resolve_loss, setting_of
from ._methods import METHODS, NLNL
from ._networks import NETWORKS, NetworkEntry, runs_per_gpu
from ._noises import (
    CLEAN,
    GIVEN,
    HUMAN_FILES,
    NOISES,
    HumanLabels,
    NoiseEntry,
    NoiseGroup,
    labels_title,
    noise_group,
    noise_title,
)
from ._optimizers import OPTIMIZERS, OptimizerEntry
from ._places import Root, files_in, find_root, folders_of, has_archives, is_here
from ._setting import Method, Setting
from ._suited import DataSummary, suited, suited_holdout, whole_batch

__all__ = [
    "AUTO",
    "AUTO_BRINGS",
    "CLEAN",
    "DATASETS",
    "GIVEN",
    "HUMAN_FILES",
    "METHODS",
    "NETWORKS",
    "NLNL",
    "NOISES",
    "OPTIMIZERS",
    "PROTOCOLS",
    "DataSummary",
    "DatasetEntry",
    "FileSet",
    "HumanLabels",
    "ImageLists",
    "Method",
    "NetworkEntry",
    "NoiseEntry",
    "NoiseGroup",
    "OptimizerEntry",
    "Protocol",
    "Root",
    "Setting",
    "auto_brings",
    "auto_note",
    "auto_setting",
    "dataset_title",
    "files_in",
    "find_root",
    "folders_of",
    "has_archives",
    "is_active_passive",
    "is_here",
    "label_of",
    "labels_title",
    "method_named",
    "no_settings",
    "no_text",
    "noise_group",
    "noise_title",
    "protocol_of",
    "rank_of",
    "resolve_loss",
    "runs_per_gpu",
    "setting_of",
    "suited",
    "suited_holdout",
    "whole_batch",
]

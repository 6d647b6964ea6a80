"""Results on disk: one folder a run, named by the run's hash, every file written atomically."""

from ._store import Folder, write_atomically

__all__ = ["Folder", "write_atomically"]

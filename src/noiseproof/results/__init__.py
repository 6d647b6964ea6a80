"""Results on disk: one folder a run, named by the run's hash, every file written atomically."""

from ._records import Reading, Record, hash_of, read, write_bundle
from ._store import Folder, write_atomically

__all__ = ["Folder", "Reading", "Record", "hash_of", "read", "write_atomically", "write_bundle"]

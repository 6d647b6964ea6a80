"""An image file as pixels: `noiseproof.sources` has it, for processes without torch."""

from ..sources._decode import UnreadableError, read_image

__all__ = ["UnreadableError", "read_image"]

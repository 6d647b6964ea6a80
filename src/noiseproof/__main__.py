"""``python -m noiseproof``."""

from noiseproof.cli import main

main()

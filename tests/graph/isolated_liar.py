"""Stands for the process of an isolated node and says what none would."""

import io
import sys

from dialoom.graph.codec_frames import Frames

if __name__ == "__main__":
    Frames(io.BytesIO(), sys.stdout.buffer).write("hello", "are", "you", "there")
    sys.stdin.buffer.read()

"""Tools that are safe to hand to any model: they compute, tell the time, and read below one folder."""

from dialoom.tools.builtin.calculator import calculator as calculator
from dialoom.tools.builtin.clock import clock_tool as clock_tool
from dialoom.tools.builtin.read_file import read_file_tool as read_file_tool

"""Tools safe to hand to any model: they compute, tell the time, read below one folder and public pages."""

from dialoom.tools.builtin.calculator import calculator as calculator
from dialoom.tools.builtin.clock import clock_tool as clock_tool
from dialoom.tools.builtin.fetch import WebPage as WebPage
from dialoom.tools.builtin.fetch import http_fetch_tool as http_fetch_tool
from dialoom.tools.builtin.read_file import read_file_tool as read_file_tool

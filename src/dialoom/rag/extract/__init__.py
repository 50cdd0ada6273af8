"""Formats that attackers write are read in limited child processes: no file can hurt the parent."""

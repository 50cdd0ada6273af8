"""HTTP behind one protocol, and the wire grammars that need no I/O."""

"""What every layer stands on: errors, ids, time, cancelling, events, text, files replaced whole."""

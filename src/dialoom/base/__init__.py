"""What every layer stands on: errors, ids, time, cancelling, events, text. No input or output."""

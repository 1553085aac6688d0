"""One folder an adapter: what drives a framework from outside, and what watches it from inside."""

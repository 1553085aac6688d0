"""The task: prompts, verifier and starting checkpoint, laid as one hashed bundle on disk that every framework reads."""

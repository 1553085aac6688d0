"""verl's asynchronous modes: what each is set to, and what is held on to so that all leave the same records."""

"""The subcommands of ``babyssa``: one typed function each, importing what is heavy only when called."""

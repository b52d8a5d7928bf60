"""What commands take: one dataclass each, of which command line and Python function are made.

Field, type, default and help are said once, as an annotated field of a frozen dataclass:

    num_jobsets: Annotated[Count, Flag("Unseen jobsets at each value.")] = 1000

- `flags` has what such an annotation says, and the types of numbers.
- `shared` has fields that several commands have, as base classes; their headings group --help.
- `command_line` makes a click command of a dataclass. Parameters of the function that the command
  calls, such as ``as_json``, are options of the terminal alone, declared in the same way.
- `metasched.arguments.takes` makes a Python function of the same dataclass: its signature is that
  of the constructor, for type checkers too, and its docstring lists the fields with their help.
- `metasched results` types the options of its calls by these commands.

Nothing here imports a library that takes time, so that --help is quick.
"""

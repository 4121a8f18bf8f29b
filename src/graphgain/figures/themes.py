"""The names of the two themes, for those who need no drawing."""

THEMES = ("light", "dark")

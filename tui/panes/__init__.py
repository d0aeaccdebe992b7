"""One file per pane: a pure function of RunView plus its cursor."""

"""Lines, colors and cells: what panes are drawn with."""

"""The metrics of groups whose last agent has ended since the summary before."""

GROUP_RETURN = "Environment/Group Cumulative Reward"  # ML-Agents' tag
GROUPS = "Environment/Groups"  # how many
GROUP_SIZE = "Environment/Group Size"  # agents of each
EARLY_ENDS = "Environment/Early Ends in Group"  # agents of each that ended while it went on

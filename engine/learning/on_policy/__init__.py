"""What on-policy algorithms share."""

"""Many environments behind one recv() and send()."""

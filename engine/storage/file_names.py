"""The names of the files in a run's folder: ML-Agents' where it has such a file."""

CONFIGURATION, EVENTS, RUN_LOGS, LOCK = "configuration.yaml", "events.jsonl", "run_logs", "run.lock"
INFERENCE = "inference.jsonl"  # the events of processes that only ran inference
TRAINING_STATUS, TIMERS, OUTPUT = "training_status.json", "timers.json", "output.log"  # in RUN_LOGS
DEVICE_CHOICES = "devices.json"  # there, too
CHECKPOINTS, PREVIOUS_CHECKPOINTS = "checkpoints", "checkpoints.previous"
ABANDONED_CHECKPOINTS = "checkpoints.abandoned"  # those newer than a checkpoint that training was rolled back to
MANIFEST = "MANIFEST.json"  # of a checkpoint
POLICIES = "policies"
SCREENSHOTS = "screenshots"
REPLAY_BUFFER = "replay_buffer.safetensors"

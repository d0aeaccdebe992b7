"""Training analytics, as Unity reads them: messages in a google.protobuf.Any, whose fields have these numbers."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.any_pb2 import Any
from google.protobuf.unknown_fields import UnknownFieldSet

STRING, INT32, BOOL = 9, 5, 8  # types of fields, by protobuf's numbers
PACKAGE = "communicator_objects"
FIELDS = {
    "TrainingEnvironmentInitialized": {
        1: ("mlagents_version", STRING), 2: ("mlagents_envs_version", STRING), 3: ("python_version", STRING),
        4: ("torch_version", STRING), 5: ("torch_device_type", STRING), 6: ("num_envs", INT32),
        7: ("num_environment_parameters", INT32), 8: ("run_options", STRING),
    },
    "TrainingBehaviorInitialized": {
        1: ("behavior_name", STRING), 2: ("trainer_type", STRING), 3: ("extrinsic_reward_enabled", BOOL),
        4: ("gail_reward_enabled", BOOL), 5: ("curiosity_reward_enabled", BOOL), 6: ("rnd_reward_enabled", BOOL),
        7: ("behavioral_cloning_enabled", BOOL), 8: ("recurrent_enabled", BOOL), 9: ("visual_encoder", STRING),
        10: ("num_network_layers", INT32), 11: ("num_network_hidden_units", INT32), 12: ("trainer_threaded", BOOL),
        13: ("self_play_enabled", BOOL), 14: ("curriculum_enabled", BOOL), 15: ("config", STRING),
    },
}  # fmt: skip


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="analytics.proto", package=PACKAGE, syntax="proto3")
    for kind, fields in FIELDS.items():
        message = file.message_type.add(name=kind)
        for number, (name, type_) in fields.items():
            message.field.add(name=name, number=number, type=type_, label=1)  # type: ignore[arg-type]  # by number
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool


_POOL = _pool()


def described(payload: bytes) -> dict[str, str | int | float]:
    """The kind of a message, and all its fields. Raises KeyError for a kind that Unity does not know."""
    packed = Any.FromString(payload)
    kind = packed.type_url.removeprefix(f"type.googleapis.com/{PACKAGE}.")
    read = message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{kind}")).FromString(packed.value)
    if len(UnknownFieldSet(read)):
        raise KeyError(f"{kind} has fields that Unity does not know")
    return {"kind": kind, **{name: getattr(read, name) for name, _ in FIELDS[kind].values()}}

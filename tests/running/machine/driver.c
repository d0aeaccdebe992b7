/* A stand-in for the NVIDIA driver's library: two GPUs, of which the second reports little, as passively cooled or
   partitioned ones do. NVML's functions, return codes and structures are described in the NVML API reference. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };

typedef struct { unsigned int gpu, memory; } Utilization;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { unsigned int pid; unsigned long long memory; unsigned int instance, compute; } Process;

static int first, second;

static int asked_for(const char *what) {
    const char *failure = getenv("DRIVER_FAILURE");
    return failure != NULL && strcmp(failure, what) == 0;
}

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return asked_for("init") ? NO_PERMISSION : SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) { return code == NO_PERMISSION ? "Insufficient Permissions" : "GPU is lost"; }

int nvmlDeviceGetCount_v2(unsigned int *count) {
    if (asked_for("slow")) usleep(600000);
    if (asked_for("count")) return GPU_IS_LOST;
    *count = asked_for("none") ? 0 : 2;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    if (index > 1) return INVALID_ARGUMENT;
    *handle = index == 0 ? &first : &second;
    return SUCCESS;
}

int nvmlDeviceGetUUID(void *handle, char *text, unsigned int length) {
    strncpy(text, handle == &first ? "GPU-aaaa-1111" : "GPU-bbbb-2222", length);
    return SUCCESS;
}

int nvmlDeviceGetName(void *handle, char *text, unsigned int length) {
    if (handle == &second) return NOT_SUPPORTED;
    strncpy(text, "Stand-in 100", length);
    return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *handle, Utilization *rates) {
    if (handle == &second) return NOT_SUPPORTED;
    rates->gpu = 42;
    rates->memory = 7;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *handle, Memory *memory) { /* an old driver has no nvmlDeviceGetMemoryInfo_v2 */
    (void)handle;
    memory->total = 80ULL << 30;
    memory->used = 6ULL << 30;
    memory->free = memory->total - memory->used;
    return SUCCESS;
}

#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *handle, Memory2 *memory) {
    (void)handle;
    memory->total = 80ULL << 30;
    memory->reserved = 1ULL << 30;
    memory->used = 5ULL << 30;
    memory->free = memory->total - memory->used - memory->reserved;
    return SUCCESS;
}
#endif

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned int *celsius) {
    if (handle == &second || sensor != 0) return NOT_SUPPORTED;
    *celsius = 55;
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned int *milliwatts) {
    if (handle == &second) return GPU_IS_LOST;
    *milliwatts = 123456;
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned int *milliwatts) {
    if (handle == &second) return NOT_SUPPORTED;
    *milliwatts = 700000;
    return SUCCESS;
}

/* The first GPU's processes are in the environment as "PID:BYTES PID:BYTES"; without bytes, these are unknown. */
static int list_processes(void *handle, const char *variable, unsigned int *count, Process *processes) {
    const char *rest = getenv(variable);
    unsigned int room = *count;
    unsigned int pid;
    int length = 0;
    if (handle == &second) return NOT_SUPPORTED;
    for (*count = 0; rest != NULL && sscanf(rest, " %u:%n", &pid, &length) == 1; ++*count) {
        char *end;
        unsigned long long memory = strtoull(rest + length, &end, 10);
        if (*count < room) {
            processes[*count].pid = pid;
            processes[*count].memory = end == rest + length ? ~0ULL : memory;
        }
        rest = end;
    }
    return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#ifdef OLD
#define VERSIONED(name) name##_v2
#else
#define VERSIONED(name) name##_v3
#endif

int VERSIONED(nvmlDeviceGetComputeRunningProcesses)(void *handle, unsigned int *count, Process *processes) {
    return list_processes(handle, "DRIVER_COMPUTE", count, processes);
}

int VERSIONED(nvmlDeviceGetGraphicsRunningProcesses)(void *handle, unsigned int *count, Process *processes) {
    return list_processes(handle, "DRIVER_GRAPHICS", count, processes);
}

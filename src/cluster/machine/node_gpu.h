/* node_gpu.h - the GPU of this machine, if the system reports one.
 *
 * NVIDIA: the driver's library (NVML), opened at run time, else /proc/driver/nvidia.  AMD: /sys.
 *
 * Thread:    any; may take some hundred milliseconds.
 * Failure:   none: unknown values are "" and 0. */
#ifndef SHOAL_CLUSTER_MACHINE_NODE_GPU_H
#define SHOAL_CLUSTER_MACHINE_NODE_GPU_H

#include <stdint.h>

struct node_gpu {
    char name[96];         /* name of the first GPU; "": none */
    uint32_t n;            /* how many */
    uint64_t memory_bytes; /* memory of all GPUs; 0: unknown */
};

void node_gpu_read(struct node_gpu *out);
/* The same below another root than "/", without NVML: for tests. */
void node_gpu_read_below(struct node_gpu *out, const char *root);

#endif

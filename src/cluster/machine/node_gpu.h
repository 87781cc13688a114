/* node_gpu.h - the graphics processor of this machine, if it has one that the system tells about.
 *
 * NVIDIA: the driver's library (NVML), opened at run time, else /proc/driver/nvidia.  AMD: /sys.
 *
 * Thread:    any; may take some hundred milliseconds.
 * Failure:   none: what the system does not tell is "" and 0. */
#ifndef SHOAL_CLUSTER_MACHINE_NODE_GPU_H
#define SHOAL_CLUSTER_MACHINE_NODE_GPU_H

#include <stdint.h>

struct node_gpu {
    char name[96];         /* of the first; "": none */
    uint32_t n;            /* how many */
    uint64_t memory_bytes; /* of all together; 0: not known */
};

void node_gpu_read(struct node_gpu *out);
/* The same below another root than "/", without NVML: for tests. */
void node_gpu_read_below(struct node_gpu *out, const char *root);

#endif

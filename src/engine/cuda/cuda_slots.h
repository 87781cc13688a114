/* cuda_slots.h - the functions of NVIDIA's driver (libcuda.so.1) that we call, declared by hand:
 * building needs no CUDA headers.  The names are those of the library, with their versions.
 *
 * Ownership: as the driver's manual says. */
#ifndef SHOAL_ENGINE_CUDA_CUDA_SLOTS_H
#define SHOAL_ENGINE_CUDA_CUDA_SLOTS_H

#include <stddef.h>
#include <stdint.h>

struct cu_context;
struct cu_module;
struct cu_function;
struct cu_stream;
struct cu_graph;
struct cu_graph_exec;

enum { /* results; 0: done */
       CU_OUT_OF_MEMORY = 2,
       CU_NO_DEVICE = 100,
};

enum { /* attributes of a device */
       CU_ATTRIBUTE_MULTIPROCESSORS = 16,
       CU_ATTRIBUTE_INTEGRATED = 18,
       CU_ATTRIBUTE_L2_BYTES = 38,
       CU_ATTRIBUTE_MAJOR = 75,
       CU_ATTRIBUTE_MINOR = 76,
       CU_ATTRIBUTE_COOPERATIVE = 95,
       CU_ATTRIBUTE_SHARED_BYTES = 97,
       CU_ATTRIBUTE_CLUSTERS = 120,
};

enum { /* attributes of a function */
       CU_FUNCTION_THREADS = 0,
       CU_FUNCTION_SHARED_BYTES = 8,
       CU_FUNCTION_ANY_CLUSTER = 14,
};

enum { /* attributes of a launch */
       CU_LAUNCH_COOPERATIVE = 2,
       CU_LAUNCH_CLUSTER = 4,
       CU_LAUNCH_EARLY = 6, /* programmatic stream serialization */
};

enum { CU_CAPTURE_THREAD = 1 }; /* other threads may call what they like meanwhile */

struct cu_launch_attribute {
    int id;
    char pad[4];
    union {
        char bytes[64];
        int flag;
        uint32_t dims[3];
    } value;
};

struct cu_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    struct cu_stream *stream;
    struct cu_launch_attribute *attributes;
    uint32_t n_attributes;
};

#define CUDA_SLOTS(X)                                                                              \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(device_count, "cuDeviceGetCount", (int *n))                                                  \
    X(device_get, "cuDeviceGet", (int *device, int number))                                        \
    X(device_name, "cuDeviceGetName", (char *name, int n, int device))                             \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))           \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                          \
    X(context_retain, "cuDevicePrimaryCtxRetain", (struct cu_context * *context, int device))      \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                               \
    X(context_use, "cuCtxSetCurrent", (struct cu_context * context))                               \
    X(memory_info, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * all_bytes))                   \
    X(module_load, "cuModuleLoadData", (struct cu_module * *module, const void *image))            \
    X(module_unload, "cuModuleUnload", (struct cu_module * module))                                \
    X(module_function, "cuModuleGetFunction",                                                      \
      (struct cu_function * *function, struct cu_module * module, const char *name))               \
    X(function_set, "cuFuncSetAttribute",                                                          \
      (struct cu_function * function, int attribute, int value))                                   \
    X(function_get, "cuFuncGetAttribute",                                                          \
      (int *value, int attribute, struct cu_function *function))                                   \
    X(cluster_count, "cuOccupancyMaxActiveClusters",                                               \
      (int *n, struct cu_function *function, const struct cu_launch_config *config))               \
    X(memory_alloc, "cuMemAlloc_v2", (uint64_t * at, size_t bytes))                                \
    X(memory_free, "cuMemFree_v2", (uint64_t at))                                                  \
    X(memory_set, "cuMemsetD8_v2", (uint64_t at, unsigned char value, size_t bytes))               \
    X(host_alloc, "cuMemHostAlloc", (void **at, size_t bytes, unsigned flags))                     \
    X(host_free, "cuMemFreeHost", (void *at))                                                      \
    X(copy_in, "cuMemcpyHtoD_v2", (uint64_t to, const void *from, size_t bytes))                   \
    X(copy_in_async, "cuMemcpyHtoDAsync_v2",                                                       \
      (uint64_t to, const void *from, size_t bytes, struct cu_stream *stream))                     \
    X(copy_out_async, "cuMemcpyDtoHAsync_v2",                                                      \
      (void *to, uint64_t from, size_t bytes, struct cu_stream *stream))                           \
    X(stream_create, "cuStreamCreate", (struct cu_stream * *stream, unsigned flags))               \
    X(stream_destroy, "cuStreamDestroy_v2", (struct cu_stream * stream))                           \
    X(stream_wait, "cuStreamSynchronize", (struct cu_stream * stream))                             \
    X(launch, "cuLaunchKernelEx",                                                                  \
      (const struct cu_launch_config *config, struct cu_function *function, void **params,         \
       void **extra))                                                                              \
    X(capture_begin, "cuStreamBeginCapture_v2", (struct cu_stream * stream, int mode))             \
    X(capture_end, "cuStreamEndCapture", (struct cu_stream * stream, struct cu_graph * *graph))    \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (struct cu_graph_exec * *exec, struct cu_graph * graph, unsigned long long flags))           \
    X(graph_launch, "cuGraphLaunch", (struct cu_graph_exec * exec, struct cu_stream * stream))     \
    X(graph_destroy, "cuGraphDestroy", (struct cu_graph * graph))                                  \
    X(graph_exec_destroy, "cuGraphExecDestroy", (struct cu_graph_exec * exec))                     \
    X(error_text, "cuGetErrorString", (int error, const char **text))

#endif

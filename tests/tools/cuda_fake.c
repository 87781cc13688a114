/* cuda_fake.c - a stand-in for NVIDIA's driver: its GPU is the emulator of the step kernel, so that
 * everything around the kernel is tested without a GPU.  What it pretends is in $CUDA_FAKE:
 *   none   no GPU            old     a driver of CUDA 11.8      small   little shared memory
 *   turing a GPU of 2018     ancient a GPU of 2017              full    256 KiB of memory
 *   taken  as full, but it says that there is more: another process takes it at that moment
 *   plain  a driver that cannot record launches
 *   dies   the third step fails, and everything after it */
#include <stdio.h>

#include "support/step_emulator.h"

#include "engine/cuda/cuda_slots.h"

#define FAKE(name, args)                                                                           \
    __attribute__((visibility("default"))) int name args;                                          \
    int name args

enum { FAILED = 719, FULL_BYTES = 256 << 10 };

/* In the order of enum many_kernel, then the others. */
enum { KERNEL_STEP = MANY_KERNELS, KERNEL_ONE, KERNEL_ONE_Q8, N_KERNELS };
static const char *const kernels[N_KERNELS] = {
    "shoal_many_input", "shoal_many_product", "shoal_many_product_thin",
    "shoal_many_turn",  "shoal_many_attend",  "shoal_step",
    "shoal_one",        "shoal_one_q8"};

static struct {
    size_t used;
    int steps, dead, contexts, allocations;
    char functions[N_KERNELS];
} fake;

static int is(const char *what)
{
    const char *now = getenv("CUDA_FAKE");
    return now && strcmp(now, what) == 0;
}

FAKE(cuInit, (unsigned flags))
{
    (void)flags;
    return is("none") ? CU_NO_DEVICE : 0;
}

FAKE(cuDriverGetVersion, (int *version))
{
    *version = is("old") ? 11080 : 13000;
    return 0;
}

FAKE(cuDeviceGetCount, (int *n))
{
    *n = 1;
    return 0;
}

FAKE(cuDeviceGet, (int *device, int number))
{
    *device = number;
    return 0;
}

FAKE(cuDeviceGetName, (char *name, int n, int device))
{
    (void)device;
    snprintf(name, (size_t)n, "Emulated GPU");
    return 0;
}

FAKE(cuDeviceGetAttribute, (int *value, int attribute, int device))
{
    (void)device;
    const int old = is("turing") || is("ancient");
    *value = attribute == CU_ATTRIBUTE_MAJOR             ? old ? 7 : 9
             : attribute == CU_ATTRIBUTE_MINOR           ? is("turing") ? 5 : 0
             : attribute == CU_ATTRIBUTE_MULTIPROCESSORS ? old ? 3 : 16
             : attribute == CU_ATTRIBUTE_SHARED_BYTES    ? is("small") ? 16 << 10 : 64 << 10
             : attribute == CU_ATTRIBUTE_CLUSTERS        ? !old
             : attribute == CU_ATTRIBUTE_COOPERATIVE     ? 1
             : attribute == CU_ATTRIBUTE_L2_BYTES        ? 1 << 20
                                                         : 0;
    return 0;
}

FAKE(cuDeviceTotalMem_v2, (size_t * bytes, int device))
{
    (void)device;
    *bytes = is("full") ? FULL_BYTES : (size_t)1 << 30;
    return 0;
}

FAKE(cuDevicePrimaryCtxRetain, (struct cu_context * *context, int device))
{
    (void)device;
    fake.contexts++;
    *context = (struct cu_context *)&fake;
    return 0;
}

FAKE(cuDevicePrimaryCtxRelease_v2, (int device))
{
    (void)device;
    fake.contexts--;
    return 0;
}

FAKE(cuCtxSetCurrent, (struct cu_context * context))
{
    return context == (struct cu_context *)&fake ? fake.dead ? FAILED : 0 : FAILED;
}

FAKE(cuMemGetInfo_v2, (size_t * free_bytes, size_t *all_bytes))
{
    (void)cuDeviceTotalMem_v2(all_bytes, 0);
    *free_bytes = *all_bytes - fake.used;
    return 0;
}

FAKE(cuModuleLoadData, (struct cu_module * *module, const void *image))
{
    *module = (struct cu_module *)&fake;
    return memcmp(image, "code", 4) == 0 ? 0 : 200;
}

FAKE(cuModuleUnload, (struct cu_module * module))
{
    (void)module;
    return 0;
}

FAKE(cuModuleGetFunction,
     (struct cu_function * *function, struct cu_module *module, const char *name))
{
    (void)module;
    for (int i = 0; i < N_KERNELS; i++)
        if (strcmp(name, kernels[i]) == 0) {
            *function = (struct cu_function *)(void *)&fake.functions[i];
            return 0;
        }
    return 500;
}

FAKE(cuFuncSetAttribute, (struct cu_function * function, int attribute, int value))
{
    (void)function;
    return attribute == CU_FUNCTION_SHARED_BYTES && value > 64 << 10 ? 1 : 0;
}

FAKE(cuFuncGetAttribute, (int *value, int attribute, struct cu_function *function))
{
    (void)function;
    *value = attribute == CU_FUNCTION_THREADS ? STEP_THREADS : 0;
    return 0;
}

FAKE(cuOccupancyMaxActiveClusters,
     (int *n, struct cu_function *function, const struct cu_launch_config *config))
{
    (void)function;
    *n = config->attributes[0].value.dims[0] <= 16;
    return 0;
}

FAKE(cuMemAlloc_v2, (uint64_t * at, size_t bytes))
{
    const size_t whole = (bytes + 255) / 256 * 256;
    if ((is("full") || is("taken")) && fake.used + whole > FULL_BYTES)
        return CU_OUT_OF_MEMORY;
    void *p = aligned_alloc(256, whole);
    memset(p, 0xcd, whole);
    fake.used += whole;
    fake.allocations++;
    *at = (uint64_t)(uintptr_t)p;
    return 0;
}

FAKE(cuMemFree_v2, (uint64_t at))
{
    free((void *)(uintptr_t)at);
    if (--fake.allocations == 0)
        fake.used = 0;
    return 0;
}

FAKE(cuMemsetD8_v2, (uint64_t at, unsigned char value, size_t bytes))
{
    memset((void *)(uintptr_t)at, value, bytes);
    return 0;
}

FAKE(cuMemHostAlloc, (void **at, size_t bytes, unsigned flags))
{
    (void)flags;
    *at = malloc(bytes);
    return 0;
}

FAKE(cuMemFreeHost, (void *at))
{
    free(at);
    return 0;
}

FAKE(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes))
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

FAKE(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, struct cu_stream *stream))
{
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}

FAKE(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, struct cu_stream *stream))
{
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return 0;
}

FAKE(cuStreamCreate, (struct cu_stream * *stream, unsigned flags))
{
    (void)flags;
    *stream = (struct cu_stream *)&fake;
    return 0;
}

FAKE(cuStreamDestroy_v2, (struct cu_stream * stream))
{
    (void)stream;
    return 0;
}

FAKE(cuStreamSynchronize, (struct cu_stream * stream))
{
    (void)stream;
    return fake.dead ? FAILED : 0;
}

struct launch {
    void **params;
    int kernel;
};

static void run_kernel(void *ctx)
{
    const struct launch *l = ctx;
    const void *first = l->params[0];
    switch (l->kernel) {
    case MANY_INPUT:
        shoal_many_input(*(const struct many_input *)first);
        break;
    case MANY_PRODUCT:
        shoal_many_product(*(const struct many_product *)first);
        break;
    case MANY_PRODUCT_THIN:
        shoal_many_product_thin(*(const struct many_product *)first);
        break;
    case MANY_TURN:
        shoal_many_turn(*(const struct many_heads *)first);
        break;
    case MANY_ATTEND:
        shoal_many_attend(*(const struct many_heads *)first);
        break;
    case KERNEL_STEP:
        shoal_step(*(const struct step_model *)first, *(const struct step_pass *)l->params[1]);
        break;
    case KERNEL_ONE:
        shoal_one(*(const struct step_model *)first, *(const struct one_model *)l->params[1],
                  *(const struct step_pass *)l->params[2], *(const uint32_t *)l->params[3]);
        break;
    default:
        shoal_one_q8(*(const struct step_model *)first, *(const struct one_model *)l->params[1],
                     *(const struct step_pass *)l->params[2], *(const uint32_t *)l->params[3]);
    }
}

/* ---- launches that are recorded ---- */

struct recorded {
    struct cu_launch_config config;
    struct cu_function *function;
    void *param;
};

struct cu_graph {
    struct recorded all[512];
    int n;
};

static struct cu_graph *recording;
static int passes_launched;

FAKE(fake_passes_launched, (void))
{
    return passes_launched;
}

static size_t param_bytes(int kernel)
{
    return kernel == MANY_INPUT                                    ? sizeof(struct many_input)
           : kernel == MANY_PRODUCT || kernel == MANY_PRODUCT_THIN ? sizeof(struct many_product)
                                                                   : sizeof(struct many_heads);
}

static int add(const struct cu_launch_config *config, struct cu_function *function, int kernel,
               void **params)
{
    if (recording->n == 512 || kernel >= MANY_KERNELS)
        return FAILED;
    struct recorded *r = &recording->all[recording->n++];
    *r = (struct recorded){*config, function, malloc(param_bytes(kernel))};
    memcpy(r->param, params[0], param_bytes(kernel));
    return 0;
}

FAKE(cuStreamBeginCapture_v2, (struct cu_stream * stream, int mode))
{
    (void)stream;
    (void)mode;
    if (is("plain") || recording)
        return FAILED;
    recording = calloc(1, sizeof(*recording));
    return 0;
}

FAKE(cuStreamEndCapture, (struct cu_stream * stream, struct cu_graph **graph))
{
    (void)stream;
    *graph = recording;
    recording = NULL;
    return *graph ? 0 : FAILED;
}

FAKE(cuGraphInstantiateWithFlags,
     (struct cu_graph_exec * *exec, struct cu_graph *graph, unsigned long long flags))
{
    struct cu_graph *copy = malloc(sizeof(*copy));
    (void)flags;
    *copy = *graph;
    graph->n = 0; /* the parameters are the copy's */
    *exec = (struct cu_graph_exec *)(void *)copy;
    return 0;
}

FAKE(cuGraphDestroy, (struct cu_graph * graph))
{
    for (int i = 0; i < graph->n; i++)
        free(graph->all[i].param);
    free(graph);
    return 0;
}

FAKE(cuGraphExecDestroy, (struct cu_graph_exec * exec))
{
    return cuGraphDestroy((struct cu_graph *)(void *)exec);
}

FAKE(cuLaunchKernelEx, (const struct cu_launch_config *config, struct cu_function *function,
                        void **params, void **extra))
{
    struct launch l = {params, (int)((char *)function - fake.functions)};
    (void)extra;
    if (l.kernel < 0 || l.kernel >= N_KERNELS || config->block[0] != STEP_THREADS)
        return 1;
    if (recording)
        return add(config, function, l.kernel, params);
    if (l.kernel >= KERNEL_STEP && ++fake.steps == 3 && is("dies"))
        fake.dead = 1;
    if (fake.dead)
        return 0; /* as the real one: the wait says it */
    return step_emulate(config->grid[0], config->shared_bytes, run_kernel, &l) ? 0 : FAILED;
}

FAKE(cuGraphLaunch, (struct cu_graph_exec * exec, struct cu_stream *stream))
{
    const struct cu_graph *graph = (const struct cu_graph *)(const void *)exec;
    int rc = 0;
    (void)stream;
    for (int i = 0; rc == 0 && i < graph->n; i++) {
        void *params[] = {graph->all[i].param};
        rc = cuLaunchKernelEx(&graph->all[i].config, graph->all[i].function, params, NULL);
    }
    passes_launched++;
    return rc;
}

FAKE(cuGetErrorString, (int error, const char **text))
{
    *text = error == FAILED             ? "unspecified launch failure"
            : error == CU_OUT_OF_MEMORY ? "out of memory"
                                        : "some error";
    return 0;
}

/* cuda_gpu.c - see cuda_gpu.h. */
#include "engine/cuda/cuda_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/cuda/cuda_graphs.h"

/* Made at build (src/engine/CMakeLists.txt); 0 bytes: without nvcc. */
extern const uint8_t cuda_code[];
extern const size_t cuda_code_bytes;

#define MOST_CODE_BYTES (64l << 20)

struct placed {
    void *at;
    bool pinned;
};

struct cuda_gpu {
    struct cuda_lib *lib;
    struct cuda_gpu_info info;
    int device, threads, one_threads;
    uint32_t tag; /* of the next exchange of the kernel of one token */
    struct cu_context *context;
    struct cu_module *module;
    struct cu_function *step, *one, *one_q8; /* one: NULL without */
    struct cu_function *many[MANY_KERNELS];
    int many_threads[MANY_KERNELS]; /* 0: without */
    struct cu_stream *stream;
    struct cuda_graphs graphs;
    struct placed *placed;
    size_t n_placed, cap_placed;
};

static const char *code_file(void)
{
    const char *path = getenv("SHOAL_CUDA_CODE");
    return path && path[0] ? path : NULL;
}

bool cuda_gpu_has_code(void)
{
    return cuda_code_bytes > 0 || code_file();
}

static int attribute(const struct cuda_lib *lib, int device, int which)
{
    int value = 0;
    return lib->api.device_attribute(&value, which, device) == 0 ? value : 0;
}

static int describe(struct cuda_gpu_info *out, const struct cuda_lib *lib, int *device,
                    struct err *e)
{
    *out = (struct cuda_gpu_info){.driver = lib->version, .n_gpus = (uint32_t)lib->n_gpus};
    int rc = cuda_lib_check(lib, lib->api.device_get(device, 0), "cannot find the first GPU", e);
    if (rc == 0)
        rc = cuda_lib_check(lib,
                            lib->api.device_name(out->name, (int)sizeof(out->name) - 1, *device),
                            "cannot read the GPU's name", e);
    if (rc == 0)
        rc = cuda_lib_check(lib, lib->api.device_memory(&out->memory_bytes, *device),
                            "cannot read the GPU's memory", e);
    out->major = attribute(lib, *device, CU_ATTRIBUTE_MAJOR);
    out->minor = attribute(lib, *device, CU_ATTRIBUTE_MINOR);
    out->n_sms = attribute(lib, *device, CU_ATTRIBUTE_MULTIPROCESSORS);
    out->shared_bytes = (size_t)attribute(lib, *device, CU_ATTRIBUTE_SHARED_BYTES);
    out->l2_bytes = (size_t)attribute(lib, *device, CU_ATTRIBUTE_L2_BYTES);
    out->clusters = attribute(lib, *device, CU_ATTRIBUTE_CLUSTERS) != 0;
    out->integrated = attribute(lib, *device, CU_ATTRIBUTE_INTEGRATED) != 0;
    if (rc == 0 && (out->major < 7 || (out->major == 7 && out->minor < 5) ||
                    !attribute(lib, *device, CU_ATTRIBUTE_COOPERATIVE)))
        rc = err_set(e, SHOAL_EUNSUPPORTED,
                     "%s is too old: its compute capability is %d.%d, 7.5 "
                     "or later is needed",
                     out->name, out->major, out->minor);
    return rc;
}

int cuda_gpu_describe(struct cuda_gpu_info *out, struct err *e)
{
    struct cuda_lib *lib;
    int device, rc = cuda_lib_open(&lib, e);
    if (rc == 0)
        rc = describe(out, lib, &device, e);
    cuda_lib_close(lib);
    return rc;
}

/* The whole file, to be freed. */
static int read_code(uint8_t **out, const char *path, struct err *e)
{
    FILE *f = fopen(path, "rbe");
    long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    *out = n > 0 && n <= MOST_CODE_BYTES ? mem_alloc((size_t)n) : NULL;
    bool ok = *out && fseek(f, 0, SEEK_SET) == 0 && fread(*out, 1, (size_t)n, f) == (size_t)n;
    if (f)
        fclose(f);
    if (ok)
        return 0;
    mem_free(*out);
    *out = NULL;
    return err_set(e, SHOAL_ENOTFOUND, "SHOAL_CUDA_CODE: cannot read %s; unset it", path);
}

/* The kernels of many tokens, if this GPU has tensor cores for them. */
static int load_many(struct cuda_gpu *g, struct err *e)
{
    static const char *const names[MANY_KERNELS] = {[MANY_INPUT] = "shoal_many_input",
                                                    [MANY_PRODUCT] = "shoal_many_product",
                                                    [MANY_PRODUCT_THIN] = "shoal_many_product_thin",
                                                    [MANY_TURN] = "shoal_many_turn",
                                                    [MANY_ATTEND] = "shoal_many_attend"};
    int rc = 0;
    if (g->info.major < 8)
        return 0;
    for (int i = 0; i < MANY_KERNELS; i++)
        if (g->lib->api.module_function(&g->many[i], g->module, names[i]) != 0)
            return 0;
    for (int i = 0; rc == 0 && i < MANY_KERNELS; i++) {
        rc = cuda_lib_check(g->lib,
                            g->lib->api.function_set(g->many[i], CU_FUNCTION_SHARED_BYTES,
                                                     (int)g->info.shared_bytes),
                            "cannot use the GPU's shared memory", e);
        if (rc == 0)
            rc = cuda_lib_check(
                g->lib,
                g->lib->api.function_get(&g->many_threads[i], CU_FUNCTION_THREADS, g->many[i]),
                "cannot read the size of a block", e);
    }
    return rc;
}

static int load_code(struct cuda_gpu *g, struct err *e)
{
    const char *path = code_file();
    uint8_t *own = NULL;
    int rc = path ? read_code(&own, path, e) : 0;
    if (rc < 0)
        return rc;
    if (!own && cuda_code_bytes == 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "this build of shoal has no CUDA kernels: build it where nvcc is installed");
    rc = cuda_lib_check(g->lib, g->lib->api.module_load(&g->module, own ? own : cuda_code),
                        "cannot load the kernels", e);
    mem_free(own);
    if (rc == 0)
        rc = cuda_lib_check(g->lib, g->lib->api.module_function(&g->step, g->module, "shoal_step"),
                            "the kernels have no step", e);
    if (rc == 0)
        rc = cuda_lib_check(g->lib,
                            g->lib->api.function_get(&g->threads, CU_FUNCTION_THREADS, g->step),
                            "cannot read the size of a block", e);
    if (rc == 0 && g->info.clusters && /* it needs what came with clusters */
        g->lib->api.module_function(&g->one_q8, g->module, "shoal_one_q8") == 0 &&
        g->lib->api.module_function(&g->one, g->module, "shoal_one") == 0)
        rc = cuda_lib_check(g->lib,
                            g->lib->api.function_get(&g->one_threads, CU_FUNCTION_THREADS, g->one),
                            "cannot read the size of a block", e);
    return rc < 0 ? rc : load_many(g, e);
}

int cuda_gpu_open(struct cuda_gpu **out, struct err *e)
{
    *out = NULL;
    struct cuda_gpu *g = mem_zalloc(sizeof(*g));
    if (!g)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a GPU");
    g->tag = 1;
    int rc = cuda_lib_open(&g->lib, e);
    if (rc == 0)
        rc = describe(&g->info, g->lib, &g->device, e);
    if (rc == 0)
        rc = cuda_lib_check(g->lib, g->lib->api.context_retain(&g->context, g->device),
                            "cannot use the GPU", e);
    if (rc == 0)
        rc = cuda_gpu_use(g, e);
    if (rc == 0)
        rc = load_code(g, e);
    if (rc == 0)
        rc = cuda_lib_check(g->lib, g->lib->api.stream_create(&g->stream, 1),
                            "cannot create a stream", e);
    if (rc < 0) {
        cuda_gpu_close(g);
        return rc;
    }
    *out = g;
    return 0;
}

void cuda_gpu_close(struct cuda_gpu *g)
{
    if (!g)
        return;
    const struct cuda_api *api = g->lib ? &g->lib->api : NULL;
    if (g->context)
        (void)api->context_use(g->context);
    if (g->lib)
        cuda_graphs_clear(&g->graphs, g->lib);
    if (g->stream)
        (void)api->stream_destroy(g->stream);
    for (size_t i = 0; i < g->n_placed; i++)
        (void)(g->placed[i].pinned ? api->host_free(g->placed[i].at)
                                   : api->memory_free((uint64_t)(uintptr_t)g->placed[i].at));
    if (g->module)
        (void)api->module_unload(g->module);
    if (g->context)
        (void)api->context_release(g->device);
    cuda_lib_close(g->lib);
    mem_free(g->placed);
    mem_free(g);
}

const struct cuda_gpu_info *cuda_gpu_info(const struct cuda_gpu *g)
{
    return &g->info;
}

int cuda_gpu_use(struct cuda_gpu *g, struct err *e)
{
    return cuda_lib_check(g->lib, g->lib->api.context_use(g->context), "cannot use the GPU", e);
}

uint32_t cuda_gpu_threads(const struct cuda_gpu *g)
{
    return (uint32_t)g->threads;
}

uint32_t cuda_gpu_one_threads(const struct cuda_gpu *g)
{
    return g->one ? (uint32_t)g->one_threads : 0;
}

void cuda_gpu_many_threads(const struct cuda_gpu *g, uint32_t *threads)
{
    for (int i = 0; i < MANY_KERNELS; i++)
        threads[i] = (uint32_t)g->many_threads[i];
}

size_t cuda_gpu_free_bytes(struct cuda_gpu *g)
{
    size_t left = 0, all = 0;
    return g->lib->api.memory_info(&left, &all) == 0 ? left : 0;
}

static int remember(struct cuda_gpu *g, void *at, bool pinned, struct err *e)
{
    if (g->n_placed == g->cap_placed) {
        const size_t cap = g->cap_placed ? g->cap_placed * 2 : 256;
        struct placed *more = mem_realloc(g->placed, cap * sizeof(*more));
        if (!more)
            return err_set(e, SHOAL_ENOMEM, "out of memory for the list of a GPU's memory");
        g->placed = more;
        g->cap_placed = cap;
    }
    g->placed[g->n_placed++] = (struct placed){at, pinned};
    return 0;
}

int cuda_gpu_place(void *gpu, void **out, const void *from, size_t bytes, struct err *e)
{
    struct cuda_gpu *g = gpu;
    uint64_t at = 0;
    char what[64];
    snprintf(what, sizeof(what), "cannot reserve %zu bytes on the GPU", bytes);
    int rc = cuda_lib_check(g->lib, g->lib->api.memory_alloc(&at, bytes), what, e);
    if (rc < 0)
        return rc;
    *out = (void *)(uintptr_t)at;
    rc = remember(g, *out, false, e);
    if (rc < 0) {
        (void)g->lib->api.memory_free(at);
        return rc;
    }
    return cuda_lib_check(
        g->lib, from ? g->lib->api.copy_in(at, from, bytes) : g->lib->api.memory_set(at, 0, bytes),
        "cannot copy to the GPU", e);
}

int cuda_gpu_pin(struct cuda_gpu *g, void **out, size_t bytes, struct err *e)
{
    *out = NULL;
    int rc = cuda_lib_check(g->lib, g->lib->api.host_alloc(out, bytes, 0),
                            "cannot reserve memory for copies to the GPU", e);
    if (rc == 0 && (rc = remember(g, *out, true, e)) < 0)
        (void)g->lib->api.host_free(*out);
    return rc;
}

/* ---- launches ------------------------------------------------------------------------------ */

static struct cu_launch_config config_of(const struct cuda_gpu *g, int threads,
                                         const struct cuda_gpu_grid *grid, uint32_t shared_bytes,
                                         struct cu_launch_attribute *a)
{
    *a = (struct cu_launch_attribute){.id = CU_LAUNCH_COOPERATIVE, .value.flag = 1};
    if (grid->cluster)
        *a = (struct cu_launch_attribute){.id = CU_LAUNCH_CLUSTER,
                                          .value.dims = {grid->n_blocks, 1, 1}};
    return (struct cu_launch_config){.grid = {grid->n_blocks, 1, 1},
                                     .block = {(uint32_t)threads, 1, 1},
                                     .shared_bytes = shared_bytes,
                                     .stream = g->stream,
                                     .attributes = a,
                                     .n_attributes = 1};
}

struct cuda_gpu_grid cuda_gpu_grid(const struct cuda_gpu *g)
{
    return (struct cuda_gpu_grid){(uint32_t)g->info.n_sms, false};
}

static int prepare(struct cuda_gpu *g, struct cu_function *f, int threads, uint32_t shared_bytes,
                   const struct cuda_gpu_grid *grid, struct err *e)
{
    struct cu_launch_attribute a;
    const struct cu_launch_config config = config_of(g, threads, grid, shared_bytes, &a);
    int n = 0, rc = cuda_lib_check(
                   g->lib,
                   g->lib->api.function_set(f, CU_FUNCTION_SHARED_BYTES, (int)g->info.shared_bytes),
                   "cannot use the GPU's shared memory", e);
    if (rc < 0 || !grid->cluster)
        return rc;
    rc = cuda_lib_check(g->lib, g->lib->api.function_set(f, CU_FUNCTION_ANY_CLUSTER, 1),
                        "cannot form a large cluster", e);
    if (rc == 0)
        rc = cuda_lib_check(g->lib, g->lib->api.cluster_count(&n, f, &config),
                            "cannot form a cluster", e);
    if (rc == 0 && n < 1)
        rc = err_set(e, SHOAL_EUNSUPPORTED, "the GPU has no room for a cluster of %u blocks",
                     grid->n_blocks);
    return rc;
}

int cuda_gpu_prepare(struct cuda_gpu *g, const struct step_model *m, const struct one_model *o,
                     const struct cuda_gpu_grid *grid, struct err *e)
{
    int rc = prepare(g, g->step, g->threads, m->shared.bytes, grid, e);
    if (rc < 0 || !o || !o->layers)
        return rc;
    const struct cuda_gpu_grid one = {o->blocks, false};
    return prepare(g, o->q8 ? g->one_q8 : g->one, g->one_threads, o->shared.bytes, &one, e);
}

int cuda_gpu_copy_in(struct cuda_gpu *g, void *to, const void *from, size_t bytes, struct err *e)
{
    return cuda_lib_check(
        g->lib, g->lib->api.copy_in_async((uint64_t)(uintptr_t)to, from, bytes, g->stream),
        "cannot copy to the GPU", e);
}

int cuda_gpu_copy_out(struct cuda_gpu *g, void *to, const void *from, size_t bytes, struct err *e)
{
    return cuda_lib_check(
        g->lib, g->lib->api.copy_out_async(to, (uint64_t)(uintptr_t)from, bytes, g->stream),
        "cannot copy from the GPU", e);
}

int cuda_gpu_step(struct cuda_gpu *g, const struct step_model *m, const struct step_pass *p,
                  const struct cuda_gpu_grid *grid, struct err *e)
{
    struct cu_launch_attribute a;
    const struct cu_launch_config config = config_of(g, g->threads, grid, m->shared.bytes, &a);
    struct step_model model = *m;
    struct step_pass pass = *p;
    void *params[] = {&model, &pass};
    return cuda_lib_check(g->lib, g->lib->api.launch(&config, g->step, params, NULL),
                          "cannot launch the step", e);
}

int cuda_gpu_one(struct cuda_gpu *g, const struct step_model *m, const struct one_model *o,
                 const struct step_pass *p, struct err *e)
{
    struct cu_launch_attribute a;
    const struct cuda_gpu_grid grid = {o->blocks, false};
    const struct cu_launch_config config = config_of(g, g->one_threads, &grid, o->shared.bytes, &a);
    struct step_model model = *m;
    struct one_model one = *o;
    struct step_pass pass = *p;
    void *params[] = {&model, &one, &pass, &g->tag};
    int rc = cuda_lib_check(g->lib,
                            g->lib->api.launch(&config, o->q8 ? g->one_q8 : g->one, params, NULL),
                            "cannot launch the step", e);
    g->tag += m->n_layers * ONE_BUFFERS;
    return rc;
}

static int launch_many(void *gpu, enum many_kernel kernel, uint32_t blocks, uint32_t shared_bytes,
                       const void *param, struct err *e)
{
    struct cuda_gpu *g = gpu;
    /* it may begin while the kernel before ends: it waits for that itself */
    struct cu_launch_attribute a = {.id = CU_LAUNCH_EARLY, .value.flag = 1};
    const struct cu_launch_config config = {.grid = {blocks, 1, 1},
                                            .block = {(uint32_t)g->many_threads[kernel], 1, 1},
                                            .shared_bytes = shared_bytes,
                                            .stream = g->stream,
                                            .attributes = &a,
                                            .n_attributes = g->info.major >= 9 ? 1 : 0};
    void *params[] = {(void *)(uintptr_t)param};
    return cuda_lib_check(g->lib, g->lib->api.launch(&config, g->many[kernel], params, NULL),
                          "cannot launch a kernel", e);
}

struct many_pass {
    struct cuda_gpu *g;
    const struct step_model *m;
    const struct many_plan *k;
    const struct step_pass *p;
    uint32_t last;
};

static int many_launches(void *ctx, struct err *e)
{
    const struct many_pass *x = ctx;
    const struct many_launcher to = {.launch = launch_many, .ctx = x->g};
    return many_run(x->k, x->m, x->p, x->last, &to, e);
}

/* Long passes are more work than calls, and seldom the same. */
#define MOST_RECORDED 32u
#define POSITIONS 128u /* positions in steps of this: a recording serves as many tokens */

int cuda_gpu_many(struct cuda_gpu *g, const struct step_model *m, const struct many_plan *k,
                  const struct step_pass *p, uint32_t last, struct err *e)
{
    struct many_pass x = {.g = g, .m = m, .k = k, .p = p, .last = last};
    if (p->n_tokens > MOST_RECORDED)
        return many_launches(&x, e);
    x.last = last / POSITIONS * POSITIONS + POSITIONS - 1;
    x.last = x.last < k->most_keys ? x.last : k->most_keys - 1;
    const struct cuda_graphs_key key = {.plan = k, .pass = *p, .last = x.last};
    return cuda_graphs_run(&g->graphs, g->lib, g->stream, &key, many_launches, &x, e);
}

int cuda_gpu_wait(struct cuda_gpu *g, struct err *e)
{
    return cuda_lib_check(g->lib, g->lib->api.stream_wait(g->stream), "the GPU failed", e);
}

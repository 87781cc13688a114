/* cuda_gpu.h - one GPU with our kernels loaded: memory, copies, and launches of the step kernel.
 *
 * Thread:    belongs to one thread at a time; cuda_gpu_use makes it the current one's.
 * Ownership: cuda_gpu_open gives, cuda_gpu_close takes back with everything placed on it.
 * Failure:   as cuda_api.h; SHOAL_EUNSUPPORTED (this build has no kernels, or none for this GPU),
 *            SHOAL_ENOMEM (the GPU's memory), SHOAL_EIO (the driver says why). */
#ifndef SHOAL_ENGINE_CUDA_CUDA_GPU_H
#define SHOAL_ENGINE_CUDA_CUDA_GPU_H

#include <stdbool.h>

#include "engine/cuda/cuda_api.h"
#include "engine/cuda/many_plan.h"
#include "engine/cuda/one.h"
#include "engine/cuda/step.h"

struct cuda_gpu_info {
    char name[96];
    int driver; /* CUDA version of the driver: 13000 is 13.0 */
    int major, minor, n_sms;
    size_t memory_bytes, shared_bytes, l2_bytes;
    bool clusters, integrated;
    uint32_t n_gpus;
};

/* Whether this build has kernels, from nvcc or from $SHOAL_CUDA_CODE. */
bool cuda_gpu_has_code(void);
/* Describes the first GPU without starting anything on it. */
SHOAL_MUST_CHECK int cuda_gpu_describe(struct cuda_gpu_info *out, struct err *e);

struct cuda_gpu;
SHOAL_MUST_CHECK int cuda_gpu_open(struct cuda_gpu **out, struct err *e);
void cuda_gpu_close(struct cuda_gpu *g);
const struct cuda_gpu_info *cuda_gpu_info(const struct cuda_gpu *g);
/* Makes the calling thread the one that uses it. */
SHOAL_MUST_CHECK int cuda_gpu_use(struct cuda_gpu *g, struct err *e);

/* Threads of a block of the step kernel. */
uint32_t cuda_gpu_threads(const struct cuda_gpu *g);
/* The same of the kernel of one token; 0: there is none for this GPU. */
uint32_t cuda_gpu_one_threads(const struct cuda_gpu *g);
/* The same of the kernels of many tokens, MANY_KERNELS of them. */
void cuda_gpu_many_threads(const struct cuda_gpu *g, uint32_t *threads);
size_t cuda_gpu_free_bytes(struct cuda_gpu *g);
/* Memory of the GPU with a copy of `from`, if that is not NULL; freed by close (step_place.place).
 */
SHOAL_MUST_CHECK int cuda_gpu_place(void *gpu, void **out, const void *from, size_t bytes,
                                    struct err *e);
/* Memory of the host that the GPU copies from and to directly; freed by close. */
SHOAL_MUST_CHECK int cuda_gpu_pin(struct cuda_gpu *g, void **out, size_t bytes, struct err *e);

/* How the step kernel is launched. */
struct cuda_gpu_grid {
    uint32_t n_blocks;
    bool cluster; /* the blocks are one cluster, at most 16; compute capability 9.0 or later */
};
/* A block for every multiprocessor: so far that was the fastest for all sizes (docs/CUDA.md). */
struct cuda_gpu_grid cuda_gpu_grid(const struct cuda_gpu *g);
/* Must precede the first step with this much shared memory; o: or NULL. */
SHOAL_MUST_CHECK int cuda_gpu_prepare(struct cuda_gpu *g, const struct step_model *m,
                                      const struct one_model *o, const struct cuda_gpu_grid *grid,
                                      struct err *e);

/* These only queue; cuda_gpu_wait waits for all. */
SHOAL_MUST_CHECK int cuda_gpu_copy_in(struct cuda_gpu *g, void *to, const void *from, size_t bytes,
                                      struct err *e);
SHOAL_MUST_CHECK int cuda_gpu_copy_out(struct cuda_gpu *g, void *to, const void *from, size_t bytes,
                                       struct err *e);
SHOAL_MUST_CHECK int cuda_gpu_step(struct cuda_gpu *g, const struct step_model *m,
                                   const struct step_pass *p, const struct cuda_gpu_grid *grid,
                                   struct err *e);
/* The kernel of one token, for a pass with one token whose position is under o->most_keys. */
SHOAL_MUST_CHECK int cuda_gpu_one(struct cuda_gpu *g, const struct step_model *m,
                                  const struct one_model *o, const struct step_pass *p,
                                  struct err *e);
/* The kernels of many tokens (many_plan_fits).  last: the highest position of the pass. */
SHOAL_MUST_CHECK int cuda_gpu_many(struct cuda_gpu *g, const struct step_model *m,
                                   const struct many_plan *k, const struct step_pass *p,
                                   uint32_t last, struct err *e);
SHOAL_MUST_CHECK int cuda_gpu_wait(struct cuda_gpu *g, struct err *e);

#endif

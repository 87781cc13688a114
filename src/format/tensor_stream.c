/* tensor_stream.c - see tensor_stream.h.
 *
 * Rows are cut into chunks of about CHUNK_VALUES, and as many chunks as fill the output buffer
 * (SLAB_VALUES) are encoded in parallel, then written in order.  Errors are summed per chunk and
 * then in order, so that the figures do not depend on the number of threads. */
#include "format/tensor_stream.h"

#include <math.h>
#include <unistd.h>

#include "base/thread/crew.h"
#include "base/mem.h"
#include "format/gguf_write.h"

enum {
    MAX_THREADS = 256,
    CHUNK_VALUES = 1 << 15,
    SLAB_VALUES = 1 << 22,
};

struct chunk_result {
    double error, size; /* sums of squares */
    uint64_t bad_row;   /* UINT64_MAX: none */
};

struct tensor_stream {
    struct crew_lane *lane;
    /* Of the current job. */
    const struct tensor_stream_job *job;
    uint64_t slab_row, slab_rows, chunk_rows;
    size_t row_bytes;
    uint8_t *slab;
    float *work; /* two rows per member */
    struct chunk_result *results;
};

int tensor_stream_create(struct tensor_stream **out, uint32_t n_threads, struct err *e)
{
    struct tensor_stream *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the tensor stream");
    if (n_threads == 0) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);
        n_threads = n > 0 ? (uint32_t)n : 1;
    }
    int rc = crew_lane_create(&s->lane, NULL, n_threads < MAX_THREADS ? n_threads : MAX_THREADS, e);
    if (rc < 0) {
        mem_free(s);
        return rc;
    }
    *out = s;
    return 0;
}

void tensor_stream_destroy(struct tensor_stream *s)
{
    if (!s)
        return;
    crew_lane_destroy(s->lane);
    mem_free(s);
}

static void encode_chunk(void *ctx, const struct crew_phase *phase, uint32_t chunk, uint32_t member)
{
    struct tensor_stream *s = ctx;
    const struct tensor_stream_job *job = s->job;
    size_t n = (size_t)job->n_cols;
    float *x = s->work + 2 * n * member, *back = x + n;
    struct chunk_result r = {0, 0, UINT64_MAX};
    uint64_t from = chunk * s->chunk_rows, to = from + s->chunk_rows;

    (void)phase;
    for (uint64_t row = from; row < to && row < s->slab_rows; row++) {
        uint8_t *dst = s->slab + row * s->row_bytes;
        double error = 0, size = 0;
        job->row(job->row_ctx, s->slab_row + row, x);
        (void)quant_from_f32(job->type, x, dst, n, job->importance); /* checked in run */
        quant_to_f32(job->type, dst, back, n);
        for (size_t i = 0; i < n; i++) {
            double d = (double)x[i] - (double)back[i];
            error += d * d;
            size += (double)x[i] * (double)x[i];
        }
        if (!isfinite(error) && r.bad_row == UINT64_MAX) /* NaN or infinity on either side */
            r.bad_row = s->slab_row + row;
        r.error += error;
        r.size += size;
    }
    s->results[chunk] = r;
}

static int run_slab(struct tensor_stream *s, struct gguf_write *w, struct chunk_result *total,
                    struct err *e)
{
    uint32_t n_chunks = (uint32_t)((s->slab_rows + s->chunk_rows - 1) / s->chunk_rows);
    struct crew_phase phase = {.chunk = encode_chunk, .n_chunks = n_chunks};
    crew_run(s->lane, s, &phase, 1, NULL);
    for (uint32_t i = 0; i < n_chunks; i++) {
        const struct chunk_result *r = &s->results[i];
        if (r->bad_row != UINT64_MAX)
            return err_set(
                e, SHOAL_EFORMAT, "tensor %s, row %llu: a value is not finite, or too large for %s",
                s->job->name, (unsigned long long)r->bad_row, quant_info(s->job->type)->name);
        total->error += r->error;
        total->size += r->size;
    }
    return gguf_write_data(w, s->slab, (size_t)s->slab_rows * s->row_bytes, e);
}

int tensor_stream_run(struct tensor_stream *s, struct gguf_write *w,
                      const struct tensor_stream_job *job, struct tensor_stream_error *error,
                      struct err *e)
{
    const struct quant_info *qi = quant_info(job->type);
    struct chunk_result total = {0, 0, UINT64_MAX};
    uint64_t n_values = 0;
    float no_values = 0;
    uint8_t no_bytes;
    int rc = 0;

    if (!quant_from_f32(job->type, &no_values, &no_bytes, 0, NULL))
        return err_set(e, SHOAL_EUNSUPPORTED, "tensor %s: %s is supported for reading only",
                       job->name, qi->name);
    if (job->n_cols == 0 || job->n_cols % qi->block != 0 || job->n_cols > INT32_MAX ||
        __builtin_mul_overflow(job->n_rows, job->n_cols, &n_values))
        return err_set(e, SHOAL_EINVAL,
                       "tensor %s: rows of %llu values do not fit the block size of %s", job->name,
                       (unsigned long long)job->n_cols, qi->name);
    s->job = job;
    s->row_bytes = (size_t)(job->n_cols / qi->block) * qi->block_bytes;
    s->chunk_rows = CHUNK_VALUES / job->n_cols + 1;
    uint64_t max_rows = SLAB_VALUES / job->n_cols + 1;
    if (max_rows > job->n_rows)
        max_rows = job->n_rows;
    s->slab = mem_alloc((size_t)max_rows * s->row_bytes + 1);
    s->work = mem_zalloc_n((size_t)job->n_cols * 2 * sizeof(float), crew_lane_size(s->lane));
    s->results = mem_zalloc_n((size_t)(max_rows / s->chunk_rows + 1), sizeof(*s->results));
    if (!s->slab || !s->work || !s->results)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory to encode tensor %s", job->name);
    for (s->slab_row = 0; rc == 0 && s->slab_row < job->n_rows; s->slab_row += s->slab_rows) {
        uint64_t left = job->n_rows - s->slab_row;
        s->slab_rows = left < max_rows ? left : max_rows;
        rc = run_slab(s, w, &total, e);
        if (rc == 0 && job->step)
            rc = job->step(job->step_ctx, s->slab_row + s->slab_rows, e);
    }
    mem_free(s->slab);
    mem_free(s->work);
    mem_free(s->results);
    s->slab = NULL;
    s->work = NULL;
    s->results = NULL;
    if (rc == 0 && error) {
        error->rmse = n_values ? sqrt(total.error / (double)n_values) : 0;
        error->relative = total.size > 0 ? sqrt(total.error / total.size) : 0;
    }
    return rc;
}

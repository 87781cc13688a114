/* quantize.c - see quantize.h. */
#include "format/convert/quantize.h"

#include <string.h>

#include "base/mem.h"
#include "format/gguf_write.h"
#include "format/tensor_stream.h"

enum { QUANTIZATION_VERSION = 2 }; /* of the format's block encodings */

struct run {
    const struct model_file *in;
    const struct quantize_opts *o;
    struct quantize_result *result;
    struct gguf_write *w;
    struct tensor_stream *stream;
    uint64_t bytes_done, bytes_total;
    size_t at;
};

void quantize_result_fini(struct quantize_result *r)
{
    for (size_t i = 0; i < r->n_tensors; i++)
        mem_free(r->tensors[i].name);
    mem_free(r->tensors);
    memset(r, 0, sizeof(*r));
}

static bool is_quantized(enum quant_type type)
{
    return quant_info(type)->block > 1;
}

static uint64_t bytes_as(enum quant_type type, uint64_t n_values)
{
    return n_values / quant_info(type)->block * quant_info(type)->block_bytes;
}

/* Fills the result with the plan.  types: one per tensor. */
static int describe(struct run *r, const enum quant_type *types, struct err *e)
{
    struct quantize_result *result = r->result;

    result->tensors = mem_zalloc_n(r->in->n_tensors, sizeof(*result->tensors));
    if (!result->tensors)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the list of %zu tensors",
                       r->in->n_tensors);
    for (size_t i = 0; i < r->in->n_tensors; i++) {
        const struct model_file_tensor *t = &r->in->tensors[i];
        struct quantize_tensor *q = &result->tensors[i];
        q->name = mem_strndup(t->name.p, t->name.n);
        if (!q->name)
            return err_set(e, SHOAL_ENOMEM, "out of memory for the name of a tensor");
        result->n_tensors = i + 1;
        q->from = t->type;
        q->to = types[i];
        q->n_values = 1;
        for (uint32_t d = 0; d < t->n_dims; d++)
            q->n_values *= t->dims[d];
        q->bytes_from = t->n_bytes;
        q->bytes_to = bytes_as(q->to, q->n_values);
        r->bytes_total += t->n_bytes;
        result->types[q->to].n_tensors++;
        result->types[q->to].n_values += q->n_values;
        result->types[q->to].n_bytes += q->bytes_to;
        if (q->from != q->to && is_quantized(q->from) && is_quantized(q->to) &&
            !r->o->allow_requantize)
            return err_set(e, SHOAL_EUNSUPPORTED,
                           "tensor %s is already %s; encoding it as %s would lose more precision "
                           "(start from F16 or F32, or allow requantizing)",
                           q->name, quant_info(q->from)->name, quant_info(q->to)->name);
    }
    return 0;
}

static int report(struct run *r, uint64_t bytes, struct err *e)
{
    struct quantize_progress p = {.tensor = r->result->tensors[r->at].name,
                                  .tensor_index = r->at,
                                  .n_tensors = r->in->n_tensors,
                                  .bytes_done = r->bytes_done + bytes,
                                  .bytes_total = r->bytes_total};
    if (r->o->progress && !r->o->progress(r->o->progress_ctx, &p))
        return err_set(e, SHOAL_ECANCELLED, "cancelled at tensor %s", p.tensor);
    return 0;
}

static int on_step(void *ctx, uint64_t rows_done, struct err *e)
{
    struct run *r = ctx;
    const struct model_file_tensor *t = &r->in->tensors[r->at];
    uint64_t n_rows = r->result->tensors[r->at].n_values / t->dims[0];
    return report(r, t->n_bytes / n_rows * rows_done, e);
}

static void read_row(const void *ctx, uint64_t row, float *out)
{
    model_file_row_f32(ctx, row, out);
}

static int write_tensor(struct run *r, struct err *e)
{
    const struct model_file_tensor *t = &r->in->tensors[r->at];
    struct quantize_tensor *q = &r->result->tensors[r->at];
    struct tensor_stream_error error = {0};
    int rc = report(r, 0, e);
    if (rc < 0)
        return rc;
    if (q->from == q->to && t->data) {
        rc = gguf_write_data(r->w, t->data, (size_t)t->n_bytes, e);
    } else {
        struct tensor_stream_job job = {.name = q->name,
                                        .n_rows = q->n_values / t->dims[0],
                                        .n_cols = t->dims[0],
                                        .type = q->to,
                                        .row = read_row,
                                        .row_ctx = t,
                                        .step = on_step,
                                        .step_ctx = r};
        if (r->o->importance)
            job.importance = r->o->importance(r->o->importance_ctx, q->name, t->dims[0]);
        q->important = job.importance && is_quantized(q->to);
        rc = tensor_stream_run(r->stream, r->w, &job, &error, e);
        q->rmse = error.rmse;
        q->relative = error.relative;
    }
    r->bytes_done += t->n_bytes;
    return rc;
}

static int write_file(struct run *r, struct err *e)
{
    gguf_write_copy(r->w, r->in);
    if (r->o->name)
        gguf_write_str(r->w, "general.name", r->o->name, strlen(r->o->name));
    gguf_write_u32(r->w, "general.file_type", quantize_file_type(r->o));
    gguf_write_u32(r->w, "general.quantization_version", QUANTIZATION_VERSION);
    for (size_t i = 0; i < r->in->n_tensors; i++) {
        const struct model_file_tensor *t = &r->in->tensors[i];
        gguf_write_tensor(r->w, t->name.p, t->name.n, r->result->tensors[i].to, t->n_dims, t->dims);
    }
    int rc = gguf_write_begin(r->w, e);
    for (r->at = 0; rc == 0 && r->at < r->in->n_tensors; r->at++)
        rc = write_tensor(r, e);
    if (rc == 0)
        rc = gguf_write_finish(r->w, e);
    return rc;
}

int quantize_run(const struct model_file *in, const char *out_path, const struct quantize_opts *o,
                 struct quantize_result *result, struct err *e)
{
    struct run r = {.in = in, .o = o, .result = result};
    enum quant_type *types = mem_zalloc_n(in->n_tensors, sizeof(*types));
    int rc = 0;

    memset(result, 0, sizeof(*result));
    if (types)
        quantize_plan(types, in, o);
    else
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the plan of %zu tensors", in->n_tensors);
    if (rc == 0)
        rc = describe(&r, types, e);
    if (rc == 0)
        rc = tensor_stream_create(&r.stream, o->n_threads, e);
    if (rc == 0)
        rc = gguf_write_create(&r.w, out_path, e);
    if (rc == 0)
        rc = write_file(&r, e);
    if (rc == 0) {
        result->bytes_from = in->n_bytes;
        result->bytes_to = gguf_write_size(r.w);
    } else {
        quantize_result_fini(result);
    }
    gguf_write_destroy(r.w);
    tensor_stream_destroy(r.stream);
    mem_free(types);
    return rc;
}

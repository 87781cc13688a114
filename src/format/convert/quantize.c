/* quantize.c - see quantize.h. */
#include "format/convert/quantize.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/gguf.h"
#include "format/gguf_write.h"
#include "format/convert/quantize_source.h"
#include "format/tensor_stream.h"

enum { QUANTIZATION_VERSION = 2 }; /* of the format's block encodings */

struct run {
    const struct quantize_source *src;
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

/* Fills the result with what is going to be done. */
static int describe(struct run *r, struct err *e)
{
    struct quantize_result *result = r->result;

    result->tensors = mem_zalloc_n(r->src->n_tensors, sizeof(*result->tensors));
    if (!result->tensors)
        return err_set(e, SHOAL_ENOMEM, "list of %zu tensors", r->src->n_tensors);
    for (size_t i = 0; i < r->src->n_tensors; i++) {
        const struct quantize_source_tensor *t = &r->src->tensors[i];
        struct quantize_tensor *q = &result->tensors[i];
        q->name = mem_strdup(t->name);
        if (!q->name)
            return err_set(e, SHOAL_ENOMEM, "name of a tensor");
        result->n_tensors = i + 1;
        q->from = t->from;
        q->to = t->to;
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
                           "tensor %s is %s already; making %s of it would add to the loss (start "
                           "from F16 or F32, or allow it)",
                           q->name, quant_info(q->from)->name, quant_info(q->to)->name);
    }
    return 0;
}

static int report(struct run *r, uint64_t bytes, struct err *e)
{
    struct quantize_progress p = {.tensor = r->result->tensors[r->at].name,
                                  .tensor_index = r->at,
                                  .n_tensors = r->src->n_tensors,
                                  .bytes_done = r->bytes_done + bytes,
                                  .bytes_total = r->bytes_total};
    if (r->o->progress && !r->o->progress(r->o->progress_ctx, &p))
        return err_set(e, SHOAL_ECANCELLED, "cancelled at tensor %s", p.tensor);
    return 0;
}

static int on_step(void *ctx, uint64_t rows_done, struct err *e)
{
    struct run *r = ctx;
    const struct quantize_source_tensor *t = &r->src->tensors[r->at];
    uint64_t n_rows = r->result->tensors[r->at].n_values / t->dims[0];
    return report(r, t->n_bytes / n_rows * rows_done, e);
}

static int write_tensor(struct run *r, struct err *e)
{
    const struct quantize_source_tensor *t = &r->src->tensors[r->at];
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
                                        .row = t->row,
                                        .row_ctx = t->row_ctx,
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
    r->src->metadata(r->src->metadata_ctx, r->w);
    if (r->o->name)
        gguf_write_str(r->w, "general.name", r->o->name, strlen(r->o->name));
    gguf_write_u32(r->w, "general.file_type", quantize_file_type(r->o));
    gguf_write_u32(r->w, "general.quantization_version", QUANTIZATION_VERSION);
    for (size_t i = 0; i < r->src->n_tensors; i++) {
        const struct quantize_source_tensor *t = &r->src->tensors[i];
        gguf_write_tensor(r->w, t->name, strlen(t->name), t->to, t->n_dims, t->dims);
    }
    int rc = gguf_write_begin(r->w, e);
    for (r->at = 0; rc == 0 && r->at < r->src->n_tensors; r->at++)
        rc = write_tensor(r, e);
    if (rc == 0)
        rc = gguf_write_finish(r->w, e);
    return rc;
}

int quantize_source_run(const struct quantize_source *src, const char *out_path,
                        const struct quantize_opts *o, struct quantize_result *result,
                        struct err *e)
{
    struct run r = {.src = src, .o = o, .result = result};

    memset(result, 0, sizeof(*result));
    int rc = describe(&r, e);
    if (rc == 0)
        rc = tensor_stream_create(&r.stream, o->n_threads, e);
    if (rc == 0)
        rc = gguf_write_create(&r.w, out_path, e);
    if (rc == 0)
        rc = write_file(&r, e);
    if (rc == 0) {
        result->bytes_from = src->n_bytes;
        result->bytes_to = gguf_write_size(r.w);
    } else {
        quantize_result_fini(result);
    }
    gguf_write_destroy(r.w);
    tensor_stream_destroy(r.stream);
    return rc;
}

static void source_row(const void *ctx, uint64_t row, float *out)
{
    enum { PART = 256 };
    const struct gguf_tensor *t = ctx;
    size_t n = (size_t)t->dims[0], bytes = (size_t)bytes_as(t->type, n);
    uint8_t cells[PART * sizeof(float)];
    if (t->data) {
        quant_to_f32(t->type, t->data + row * bytes, out, n);
        return;
    }
    for (size_t at = 0; at < n; at += PART) { /* its file has another order */
        size_t part = n - at < PART ? n - at : PART;
        gguf_rows(t, row, 1, at, part, cells);
        quant_to_f32(t->type, cells, out + at, part);
    }
}

static void gguf_metadata(const void *ctx, struct gguf_write *w)
{
    gguf_write_copy(w, ctx);
}

int quantize_run(const struct gguf *in, const char *out_path, const struct quantize_opts *o,
                 struct quantize_result *result, struct err *e)
{
    struct quantize_source src = {.n_tensors = in->n_tensors,
                                  .n_bytes = in->n_bytes,
                                  .metadata = gguf_metadata,
                                  .metadata_ctx = in};
    enum quant_type *types = mem_zalloc_n(in->n_tensors, sizeof(*types));
    int rc = 0;

    memset(result, 0, sizeof(*result));
    src.tensors = mem_zalloc_n(in->n_tensors, sizeof(*src.tensors));
    if (!types || !src.tensors)
        rc = err_set(e, SHOAL_ENOMEM, "plan of %zu tensors", in->n_tensors);
    else
        quantize_plan(types, in, o);
    for (size_t i = 0; rc == 0 && i < in->n_tensors; i++) {
        const struct gguf_tensor *t = &in->tensors[i];
        struct quantize_source_tensor *s = &src.tensors[i];
        snprintf(s->name, sizeof(s->name), "%.*s", (int)t->name.n, t->name.p);
        s->from = t->type;
        s->to = types[i];
        s->n_dims = t->n_dims;
        memcpy(s->dims, t->dims, sizeof(s->dims));
        s->n_bytes = t->n_bytes;
        s->data = t->data;
        s->row = source_row;
        s->row_ctx = t;
    }
    if (rc == 0)
        rc = quantize_source_run(&src, out_path, o, result, e);
    mem_free(src.tensors);
    mem_free(types);
    return rc;
}

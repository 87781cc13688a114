/* bare_model.c - see bare_model.h. */
#include "cmd/local/bare_model.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "host/model_name.h"
#include "engine/cache_dir.h"
#include "engine/onnx/onnx_files.h"
#include "format/model_open.h"

#define TINY_MODEL_BYTES ((size_t)2 << 20)

struct tiling {
    struct term_progress bar;
    int interrupt_fd;
    bool interrupted;
};

static bool tiling_progress(void *ctx, double part)
{
    struct tiling *p = ctx;
    term_progress_show(&p->bar, part, NULL);
    p->interrupted |= term_interrupted(p->interrupt_fd);
    return p->interrupted;
}

struct bare_model_opts bare_model_opts_read(const struct opts *o, int interrupt_fd)
{
    return (struct bare_model_opts){.path = opts_text(o, "model"),
                                    .included = !opts_given(o, "model"),
                                    .kernels = opts_text(o, "kernels"),
                                    .key_file = opts_text(o, "key-file"),
                                    .kv_q8 = strcmp(opts_text(o, "kv"), "q8") == 0,
                                    .no_cache = opts_flag(o, "no-cache"),
                                    .n_threads = opts_u32(o, "threads"),
                                    .n_ctx = opts_u32(o, "ctx"),
                                    .max_batch = opts_u32(o, "chunk"),
                                    .interrupt_fd = interrupt_fd};
}

static int load(struct bare_model *m, const struct bare_model_opts *o, struct tiling *tiling,
                struct err *e)
{
    char dir[PATH_MAX];
    struct decoder_opts d = {.n_threads = o->n_threads,
                             .n_ctx = o->n_ctx,
                             .max_batch = o->max_batch,
                             .max_logits = o->max_logits,
                             .n_states = o->n_seqs,
                             .kv_kind = o->kv_q8 ? KERN_KV_Q8 : KERN_KV_F16,
                             .cache_dir = o->no_cache ? NULL : cache_dir_default(dir, sizeof(dir)),
                             .progress = tiling_progress,
                             .progress_ctx = tiling};
    struct onnx_files files;
    int rc = onnx_files_find(&files, o->path, e);
    if (rc == 1)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%s is an ONNX model: this command needs a native one", o->path);
    if (rc == 0)
        rc = model_open_with(&m->file, o->path, o->key_file, e);
    if (rc < 0)
        return rc;
    if (o->kernels && !(d.kernels = kern_select(o->kernels, e)))
        return SHOAL_EUNSUPPORTED;
    if (d.n_threads == 0) { /* like the engine: a second thread slows a tiny model down */
        struct decoder_sizes sizes;
        rc = decoder_measure(&sizes, m->file, &d, e);
        if (rc == 0 && sizes.weights < TINY_MODEL_BYTES)
            d.n_threads = 1;
    }
    if (rc == 0 && !o->no_tokenizer)
        rc = tokenizer_create(&m->t, m->file, e);
    if (rc == 0)
        rc = decoder_create(&m->d, m->file, o->path, &d, e);
    return rc < 0 ? err_wrap(e, "%s", o->path) : 0;
}

static int reserve(struct bare_model *m, const struct bare_model_opts *o, struct err *e)
{
    m->n_ctx = decoder_n_ctx(m->d);
    m->n_seqs = o->n_seqs ? o->n_seqs : 1;
    m->pages_per_seq = (m->n_ctx + KERN_PAGE - 1) / KERN_PAGE;
    size_t n_pages = (size_t)m->pages_per_seq * m->n_seqs;
    if (!mem_mul(&m->kv_bytes, decoder_kv_page_bytes(m->d), n_pages))
        m->kv_bytes = 0;
    m->kv = mem_pages(m->kv_bytes);
    m->pages = mem_zalloc_n(n_pages, sizeof(*m->pages));
    if (!m->kv || !m->pages)
        return err_set(e, SHOAL_ENOMEM, "%s: out of memory for a key-value cache of %zu bytes",
                       o->path, m->kv_bytes);
    for (size_t i = 0; i < n_pages; i++)
        m->pages[i] = (uint32_t)i;
    decoder_set_kv(m->d, m->kv);
    return 0;
}

int bare_model_open(struct bare_model *m, const struct opts_page *page,
                    const struct bare_model_opts *o)
{
    struct err e = {0};
    struct tiling tiling = {.interrupt_fd = o->interrupt_fd};
    struct bare_model_opts named = *o;
    struct model_name name;
    memset(m, 0, sizeof(*m));
    if (!o->path)
        return opts_usage(page, "no model given: use -m MODEL");
    int rc = o->included ? model_name_included(&name, o->path, &e)
                         : model_name_find(&name, NULL, o->path, &e);
    named.path = name.path;
    term_progress_init(&tiling.bar, "tiling weights");
    if (rc == 0)
        rc = load(m, &named, &tiling, &e);
    term_progress_end(&tiling.bar);
    if (rc == 0)
        rc = reserve(m, &named, &e);
    model_name_fini(&name);
    if (tiling.interrupted)
        return CMD_INTERRUPTED;
    return rc < 0 ? cmd_fail(page, "%s", e.msg) : CMD_OK;
}

void bare_model_close(struct bare_model *m)
{
    decoder_destroy(m->d);
    tokenizer_destroy(m->t);
    model_file_close(m->file);
    mem_pages_free(m->kv, m->kv_bytes);
    mem_free(m->pages);
    memset(m, 0, sizeof(*m));
}

static bool named(const struct model_file_tensor *t, const char *name)
{
    return t->name.n == strlen(name) && memcmp(t->name.p, name, t->name.n) == 0;
}

uint64_t bare_model_touched_bytes(const struct model_file *file, uint64_t *n_weights,
                                  uint64_t *n_output)
{
    bool tied = !model_file_find_tensor(file, "output.weight");
    uint64_t bytes = 0, weights = 0, output = 0;
    for (size_t i = 0; i < file->n_tensors; i++) {
        const struct model_file_tensor *t = &file->tensors[i];
        if ((named(t, "token_embd.weight") && !tied) || named(t, "position_embd.weight") ||
            named(t, "token_types.weight"))
            continue;
        bytes += t->n_bytes;
        if (t->n_dims < 2)
            continue;
        const uint64_t n = t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
        weights += n;
        if (named(t, tied ? "token_embd.weight" : "output.weight"))
            output += n;
    }
    *n_weights = weights;
    *n_output = output;
    return bytes;
}

/* decoder_rig.h - a decoder of tests/data/refs with its own KV cache, without an engine. */
#ifndef SHOAL_TESTS_DECODER_RIG_H
#define SHOAL_TESTS_DECODER_RIG_H

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "format/gguf.h"
#include "model/decoder.h"

#define DECODER_RIG_BATCH 64u

struct decoder_rig {
    struct model_file *g;
    struct decoder *d;
    uint8_t *kv;
    size_t kv_bytes;
    uint32_t pages[256];
};

static inline void decoder_rig_open_file(struct decoder_rig *r, const char *path, const char *name,
                                         const struct kern_ops *k, uint32_t threads,
                                         enum kern_kv kv)
{
    struct err e = {0};
    if (gguf_open(&r->g, path, &e) < 0)
        fail_msg("%s", e.msg);
    struct decoder_opts o = {.kernels = k,
                             .n_threads = threads,
                             .n_ctx = 2048,
                             .max_batch = DECODER_RIG_BATCH,
                             .max_logits = DECODER_RIG_BATCH,
                             .kv_kind = kv};
    if (strcmp(name, "gpt2") == 0)
        o.n_ctx = 0; /* learned positions: no more than the file has */
    if (decoder_create(&r->d, r->g, path, &o, &e) < 0)
        fail_msg("%s: %s", name, e.msg);
    r->kv_bytes = decoder_kv_page_bytes(r->d) * 256;
    r->kv = mem_pages(r->kv_bytes);
    assert_non_null(r->kv);
    decoder_set_kv(r->d, r->kv);
    for (uint32_t i = 0; i < 256; i++)
        r->pages[i] = (i * 37 + 11) % 256; /* any order */
}

static inline void decoder_rig_open_kv(struct decoder_rig *r, const char *name,
                                       const struct kern_ops *k, uint32_t threads, enum kern_kv kv)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/refs/%s.gguf", SHOAL_TEST_DATA, name);
    decoder_rig_open_file(r, path, name, k, threads, kv);
}

static inline void decoder_rig_open(struct decoder_rig *r, const char *name,
                                    const struct kern_ops *k, uint32_t threads)
{
    decoder_rig_open_kv(r, name, k, threads, KERN_KV_F16);
}

static inline void decoder_rig_close(struct decoder_rig *r)
{
    decoder_destroy(r->d);
    model_file_close(r->g);
    mem_pages_free(r->kv, r->kv_bytes);
}

/* Logits of every position, in passes of at most `batch` tokens. */
static inline void decoder_rig_logits(struct decoder_rig *r, const int32_t *tokens, uint32_t n,
                                      uint32_t batch,
                                      void (*row)(void *ctx, uint32_t pos, const float *logits),
                                      void *ctx)
{
    for (uint32_t at = 0; at < n; at += batch) {
        uint32_t m = n - at < batch ? n - at : batch;
        struct decoder_run run = {
            .tokens = tokens + at, .n = m, .pos0 = at, .pages = r->pages, .n_logits_last = m};
        decoder_forward(r->d, &run, 1);
        for (uint32_t i = 0; i < m; i++)
            row(ctx, at + i, decoder_logits(r->d, i));
    }
}

#endif

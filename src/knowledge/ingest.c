/* ingest.c - see ingest.h. */
#include "knowledge/ingest.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "store/doc/doc_read.h"

#define MAX_EMBED_BYTES ((size_t)512 << 20)

/* ---- the end ---- */

static void finish(struct ingest *x, const struct failure *f)
{
    collections_release(x->collections, x->held);
    x->held = NULL;
    if (x->model)
        registry_put(x->model);
    x->model = NULL;
    mem_free(x->chunks);
    mem_free(x->texts);
    mem_free(x->embedding.vectors);
    x->chunks = NULL;
    x->texts = NULL;
    x->embedding.vectors = NULL;
    doc_fini(&x->doc);
    arena_fini(&x->arena);
    x->done(x, f);
}

static void fail(struct ingest *x, int rc, const char *msg)
{
    struct failure f;
    failure_of(&f, rc, msg);
    finish(x, &f);
}

/* Runs `work`, then `then`; x->rc and x->error have the outcome. */
static void offload(struct ingest *x, void (*work)(void *), void (*then)(void *))
{
    x->offload = (struct offload){.work = work, .then = then, .ctx = x};
    if (x->cancelled)
        fail(x, SHOAL_ECANCELLED, "cancelled");
    else if (offload_run(&x->offload, x->owner) < 0)
        fail(x, SHOAL_EBUSY, "too many documents are waiting: try again later");
}

/* ---- storing ---- */

static void store_it(void *ctx)
{
    struct ingest *x = ctx;
    const char *title = x->title && x->title[0] ? x->title : x->doc.title;
    const struct collection_doc d = {
        .name = x->name, .title = title, .hash = x->hash, .n_bytes = x->n_bytes};
    x->rc = collection_put(x->held, &d, x->chunks, x->n_chunks, x->embedding.vectors,
                           x->embedding.n_dims, x->embedding.version, x->max_chunks, &x->error);
}

static void on_stored(void *ctx)
{
    struct ingest *x = ctx;
    if (x->rc < 0)
        fail(x, x->rc, x->error.msg);
    else
        finish(x, NULL);
}

/* ---- embedding ---- */

static void on_embedded(struct embedding *m, const struct failure *f)
{
    struct ingest *x = EXECUTOR_OF(m, struct ingest, embedding);
    x->n_tokens = m->n_tokens;
    if (f)
        finish(x, f);
    else
        offload(x, store_it, on_stored);
}

static void on_progress(struct embedding *m, uint32_t n)
{
    struct ingest *x = EXECUTOR_OF(m, struct ingest, embedding);
    if (x->progress)
        x->progress(x, n, x->n_chunks);
}

static void on_cut(void *ctx)
{
    struct ingest *x = ctx;
    if (x->model)
        registry_put(x->model);
    x->model = NULL;
    if (x->rc < 0 || x->cancelled) {
        fail(x, x->rc < 0 ? x->rc : SHOAL_ECANCELLED, x->rc < 0 ? x->error.msg : "cancelled");
        return;
    }
    x->embedding = (struct embedding){.owner = x->owner,
                                      .who = x->who,
                                      .model = x->info.model,
                                      .texts = x->texts,
                                      .n = x->n_chunks,
                                      .done = on_embedded,
                                      .progress = on_progress};
    embedding_run(&x->embedding);
}

/* ---- reading ---- */

static uint32_t count_tokens(void *ctx, const char *word, size_t n)
{
    int32_t *tokens;
    size_t n_tokens;
    struct err e;
    if (shoal_tokenize(registry_engine(ctx), word, n, 0, &tokens, &n_tokens, &e) < 0)
        return chunk_guess(word, n);
    shoal_free(tokens);
    return (uint32_t)n_tokens;
}

/* What the model reads of a passage: its heading, or the title, in front of it. */
static int make_texts(struct ingest *x)
{
    x->texts = mem_zalloc_n((size_t)x->n_chunks + 1, sizeof(*x->texts));
    for (uint32_t i = 0; x->texts && i < x->n_chunks; i++) {
        const struct chunk *k = &x->chunks[i];
        const char *head = k->heading_bytes ? k->heading : x->doc.title;
        size_t n_head = k->heading_bytes ? k->heading_bytes : strlen(head);
        if (n_head == 0) {
            x->texts[i] = (struct str){k->text, k->text_bytes};
            continue;
        }
        char *p = arena_bytes(&x->arena, n_head + 2 + k->text_bytes);
        if (!p)
            break;
        memcpy(p, head, n_head);
        memcpy(p + n_head, ": ", 2);
        memcpy(p + n_head + 2, k->text, k->text_bytes);
        x->texts[i] = (struct str){p, n_head + 2 + k->text_bytes};
    }
    return x->texts && x->arena.rc == 0
               ? 0
               : err_set(&x->error, SHOAL_ENOMEM, "out of memory for passages");
}

static void cut_it(void *ctx)
{
    struct ingest *x = ctx;
    const struct chunk_opts o = {
        .max_tokens = x->info.max_tokens,
        .overlap = x->info.overlap,
        .max_chunks = x->max_chunks && x->max_chunks < UINT32_MAX ? (uint32_t)x->max_chunks : 0,
        .count = x->model ? count_tokens : NULL,
        .ctx = x->model};
    x->rc = doc_read(&x->doc, x->format, x->bytes, x->n_bytes, x->name, &x->error);
    if (x->rc == 0)
        x->rc = chunk_cut(&x->chunks, &x->n_chunks, &x->doc, &o, &x->error);
    if (x->rc == 0 && x->n_chunks == 0)
        x->rc = err_set(&x->error, SHOAL_EFORMAT, "%.200s has no text", x->name);
    if (x->rc == 0)
        x->rc = make_texts(x);
}

/* Without a local model (it runs elsewhere, or is not loaded) token counts are estimated. */
static void on_no_model(struct acquire *a, const struct failure *f)
{
    (void)a;
    (void)f;
}

static void on_model(struct acquire *a, struct registry_model *m)
{
    struct ingest *x = EXECUTOR_OF(a, struct ingest, acquire);
    x->model = m;
    offload(x, cut_it, on_cut);
}

static void on_opened(void *ctx)
{
    struct ingest *x = ctx;
    if (x->rc < 0) {
        fail(x, x->rc, x->error.msg);
    } else if (x->unchanged) {
        finish(x, NULL);
    } else {
        x->acquire = (struct acquire){
            .owner = x->owner, .ready = on_model, .failed = on_no_model, .key = ""};
        acquire_model(&x->acquire, x->info.model, SHOAL_KIND_EMBED);
    }
}

static void open_it(void *ctx)
{
    struct ingest *x = ctx;
    x->hash = hash_large(x->bytes, x->n_bytes, x->format);
    x->rc = collections_hold(x->collections, x->collection, &x->held, &x->error);
    if (x->rc == 0)
        x->rc = collection_info(x->held, &x->info, &x->error);
    if (x->rc == 0) {
        x->rc = collection_has(x->held, x->name, x->hash, &x->error);
        x->unchanged = x->rc == 1;
    }
}

void ingest_run(struct ingest *x)
{
    doc_init(&x->doc);
    arena_init(&x->arena, MAX_EMBED_BYTES);
    offload(x, open_it, on_opened);
}

void ingest_cancel(struct ingest *x)
{
    x->cancelled = true;
    if (x->embedding.sink.job)
        embedding_cancel(&x->embedding);
}

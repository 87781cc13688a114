/* page_share.c - see page_share.h. */
#include "cluster/affinity/page_share.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/thread/executor.h"
#include "cluster/affinity/page_worth.h"
#include "cluster/messages/pages_pb.h"
#include "engine/decode/page_exchange.h"
#include "flow/request.h"
#include "host/registry.h"

#define ARENA_BYTES (4 * PAGES_PB_MAX_REQUEST)

struct page_share {
    struct page_job job; /* first */
    struct registry_model *model;
    struct executor *executor;
    struct executor_task copied;
    void (*ready)(void *ctx);
    void *ctx;
    struct arena arena; /* of the request */
    struct pages_request request;
    struct pages_key key;
    uint32_t n_sent;
};

static void on_copied(struct executor_task *t)
{
    struct page_share *s = EXECUTOR_OF(t, struct page_share, copied);
    s->ready(s->ctx);
}

/* On the engine's thread. */
static void on_done(struct page_job *j)
{
    struct page_share *s = (struct page_share *)(void *)j;
    executor_post(s->executor, &s->copied);
}

/* As the scheduler computes it for a request of this client. */
static uint64_t scope_of(const struct pages_request *r)
{
    struct request_client who = {.weight = 0};
    snprintf(who.name, sizeof(who.name), "%s", r->client);
    return r->shares_cache ? 0 : request_client_id(&who);
}

static int find_model(struct page_share *s, struct registry *all, struct err *e)
{
    const struct pages_request *r = &s->request;
    const struct registry_want want = {
        .name = r->model, .kind = SHOAL_KIND_GENERATE, .version = r->version};
    int rc = registry_get_wanted(all, &want, &s->model, NULL, e);
    if (rc < 0)
        return rc;
    const uint8_t *sum = registry_sum(s->model);
    if (!sum || memcmp(sum, r->version, SHA256_BYTES) != 0 ||
        page_exchange_bytes(registry_engine(s->model)) != r->page_bytes)
        return err_set(e, SHOAL_ENOTFOUND, "the pages here are of another form");
    return 0;
}

static int prepare(struct page_share *s, struct err *e)
{
    const struct pages_request *r = &s->request;
    const uint32_t n = r->n_tokens / PAGE_EXCHANGE_TOKENS;
    const size_t most = PAGE_WORTH_MAX_BYTES / r->page_bytes;
    if (r->skip >= n)
        return err_set(e, SHOAL_EFORMAT, "there are no pages after the first %u", r->skip);
    s->job =
        (struct page_job){.done = on_done,
                          .scope = page_exchange_scope(scope_of(r), registry_adapter(s->model)),
                          .tokens = r->tokens,
                          .n_tokens = r->n_tokens,
                          .skip = r->skip,
                          .max_pages = n - r->skip < most ? n - r->skip : (uint32_t)most};
    s->job.data = mem_alloc(s->job.max_pages * r->page_bytes);
    bool ok = s->job.data && pages_key_begin(&s->key, r);
    for (uint32_t i = 0; ok && i < r->skip; i++)
        ok = pages_key_next(&s->key, r->tokens + (size_t)i * PAGE_EXCHANGE_TOKENS);
    return ok ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for the pages");
}

int page_share_start(struct page_share **out, struct registry *r, const uint8_t *message, size_t n,
                     struct executor *x, void (*ready)(void *ctx), void *ctx, struct err *e)
{
    struct page_share *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the pages");
    s->executor = x;
    s->copied.fn = on_copied;
    s->ready = ready;
    s->ctx = ctx;
    arena_init(&s->arena, ARENA_BYTES);
    int rc = pages_pb_read_request(&s->request, &s->arena, message, n, e);
    if (rc == 0)
        rc = find_model(s, r, e);
    if (rc == 0)
        rc = prepare(s, e);
    if (rc < 0) {
        page_share_free(s);
        return rc;
    }
    *out = s;
    page_exchange_submit(registry_engine(s->model), &s->job);
    return 0;
}

int page_share_next(struct page_share *s, struct buf *out)
{
    const uint32_t page = s->request.skip + s->n_sent;
    if (s->n_sent == s->job.n_pages)
        return 0;
    if (!pages_key_next(&s->key, s->request.tokens + (size_t)page * PAGE_EXCHANGE_TOKENS))
        return SHOAL_EINTERNAL;
    int rc =
        pages_pb_put_page(out, page, &s->key, s->job.data + s->n_sent++ * s->request.page_bytes,
                          s->request.page_bytes);
    return rc < 0 ? rc : 1;
}

void page_share_free(struct page_share *s)
{
    if (!s)
        return;
    if (s->model)
        registry_put(s->model);
    mem_free(s->job.data);
    arena_fini(&s->arena);
    mem_free(s);
}

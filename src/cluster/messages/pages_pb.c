/* pages_pb.c - see pages_pb.h. */
#include "cluster/messages/pages_pb.h"

#include <string.h>

#include <shoal/node/v1/node.pb-c.h>

#include "engine/decode/page_exchange.h"
#include "wire/pb.h"

#define MAX_FIELDS (PAGES_PB_MAX_TOKENS + 16u)

typedef Shoal__Node__V1__PagesRequest pb_request;
typedef Shoal__Node__V1__PagesChunk pb_chunk;

int pages_pb_put_request(struct buf *out, const struct pages_request *r)
{
    pb_request m = SHOAL__NODE__V1__PAGES_REQUEST__INIT;
    m.model = pb_text(r->model);
    m.version = pb_bytes(r->version, SHA256_BYTES);
    m.client = pb_text(r->client);
    m.shares_cache = r->shares_cache;
    m.page_bytes = r->page_bytes;
    m.skip = r->skip;
    m.tokens = (int32_t *)(uintptr_t)r->tokens; /* only read */
    m.n_tokens = r->n_tokens;
    return pb_put(out, &m.base);
}

int pages_pb_read_request(struct pages_request *out, struct arena *a, const uint8_t *p, size_t n,
                          struct err *e)
{
    const ProtobufCMessageDescriptor *d = &shoal__node__v1__pages_request__descriptor;
    char path[64];
    *out = (struct pages_request){0};
    if (n > PAGES_PB_MAX_REQUEST || pb_check(d, p, n, MAX_FIELDS, path, sizeof(path)) < 0)
        return err_set(e, SHOAL_EFORMAT, "this is not a request for pages");
    const pb_request *m = pb_unpack(d, a, p, n);
    if (!m)
        return err_set(e, a->rc < 0 ? a->rc : SHOAL_EFORMAT, "this is not a request for pages");
    if (m->version.len != SHA256_BYTES || !m->model[0])
        return err_set(e, SHOAL_EFORMAT, "a request for pages needs the model and its SHA-256");
    if (m->n_tokens > PAGES_PB_MAX_TOKENS || m->n_tokens < PAGE_EXCHANGE_TOKENS ||
        m->page_bytes == 0 || m->page_bytes > PAGES_PB_MAX_PAGE)
        return err_set(e, SHOAL_ELIMIT, "a request for pages of %zu tokens, %llu bytes each",
                       m->n_tokens, (unsigned long long)m->page_bytes);
    *out = (struct pages_request){.model = m->model,
                                  .version = m->version.data,
                                  .client = m->client,
                                  .shares_cache = m->shares_cache,
                                  .page_bytes = m->page_bytes,
                                  .skip = m->skip,
                                  .tokens = m->tokens,
                                  .n_tokens = (uint32_t)m->n_tokens};
    return 0;
}

bool pages_key_begin(struct pages_key *k, const struct pages_request *r)
{
    struct sha256 s;
    const uint8_t shared = r->shares_cache;
    sha256_begin(&s);
    sha256_add(&s, r->version, SHA256_BYTES);
    sha256_add(&s, &shared, 1);
    if (!shared)
        sha256_add(&s, r->client, strlen(r->client) + 1);
    return sha256_end(&s, k->sum);
}

bool pages_key_next(struct pages_key *k, const int32_t *tokens)
{
    uint8_t bytes[4 * PAGE_EXCHANGE_TOKENS];
    struct sha256 s;
    for (uint32_t i = 0; i < PAGE_EXCHANGE_TOKENS; i++)
        for (uint32_t b = 0; b < 4; b++)
            bytes[4 * i + b] = (uint8_t)((uint32_t)tokens[i] >> (8 * b));
    sha256_begin(&s);
    sha256_add(&s, k->sum, SHA256_BYTES);
    sha256_add(&s, bytes, sizeof(bytes));
    return sha256_end(&s, k->sum);
}

static bool sum_of(uint8_t out[SHA256_BYTES], const uint8_t *p, size_t n)
{
    struct sha256 s;
    sha256_begin(&s);
    sha256_add(&s, p, n);
    return sha256_end(&s, out);
}

int pages_pb_put_page(struct buf *out, uint32_t page, const struct pages_key *key,
                      const uint8_t *data, size_t n)
{
    pb_chunk m = SHOAL__NODE__V1__PAGES_CHUNK__INIT;
    uint8_t sum[SHA256_BYTES];
    if (!sum_of(sum, data, n))
        return SHOAL_EINTERNAL;
    m.page = page;
    m.key = pb_bytes(key->sum, SHA256_BYTES);
    m.sum = pb_bytes(sum, SHA256_BYTES);
    m.data = pb_bytes(data, n);
    return pb_put(out, &m.base);
}

int pages_pb_read_page(uint8_t *out, uint32_t page, const struct pages_key *key, size_t page_bytes,
                       const uint8_t *p, size_t n, struct err *e)
{
    uint8_t sum[SHA256_BYTES];
    struct arena a;
    int rc = 0;
    if (n > PAGES_PB_MAX_CHUNK)
        return err_set(e, SHOAL_ELIMIT, "a page of %zu bytes", n);
    arena_init(&a, PAGES_PB_MAX_CHUNK + 4096);
    const pb_chunk *m = pb_unpack(&shoal__node__v1__pages_chunk__descriptor, &a, p, n);
    if (!m || m->key.len != SHA256_BYTES || m->sum.len != SHA256_BYTES)
        rc = err_set(e, SHOAL_EFORMAT, "a page that is none");
    else if (m->page != page || memcmp(m->key.data, key->sum, SHA256_BYTES) != 0)
        rc = err_set(e, SHOAL_EFORMAT, "another page than was asked for");
    else if (m->data.len != page_bytes || !sum_of(sum, m->data.data, m->data.len) ||
             memcmp(sum, m->sum.data, SHA256_BYTES) != 0)
        rc = err_set(e, SHOAL_EFORMAT, "a damaged page");
    if (rc == 0)
        memcpy(out, m->data.data, page_bytes);
    arena_fini(&a);
    return rc;
}

/* page_links.c - see page_links.h. */
#include "cluster/affinity/page_links.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/affinity/page_worth.h"
#include "cluster/messages/pages_pb.h"
#include "cluster/trust/cert.h"
#include "cluster/trust/roles.h"
#include "engine/decode/page_exchange.h"
#include "flow/page_source.h"
#include "flow/request.h"
#include "host/registry.h"
#include "net/grpc_frame.h"
#include "net/http_client.h"
#include "net/listen.h"
#include "net/loop.h"

#define MAX_PEERS 64u
#define MAX_FETCHES 8u /* at a time; further prompts are computed */

struct page_peer {
    struct page_peer *next;
    char address[160], name[128]; /* as in the request */
    struct http_client *client;
    struct page_link link;
};

struct page_links {
    struct page_source source; /* first */
    struct loop *loop;
    struct tls_client *tls;
    size_t link;
    struct page_counts *counts;
    struct page_peer *peers;
    struct fetch *running;
    uint32_t n_peers, n_running;
};

/* Pages on their way into an engine. */
struct parcel {
    struct page_job job; /* first */
    int32_t *tokens;
    uint8_t *data;
};

struct fetch {
    struct http_call call;
    struct fetch *next; /* of those that run */
    struct page_links *all;
    struct page_fetch *of;
    struct page_peer *peer;
    struct executor_timer limit;
    struct executor_task ended;
    struct buf in;
    struct pages_key key;
    struct parcel *parcel;
    size_t page_bytes;
    uint32_t n_wanted, n_have;
    uint64_t start_ns, first_ns;
    bool over, failed;
};

/* ---- peers ---- */

/* Every holder of a certificate of the shoal is a member, but only nodes have pages. */
static int check_peer(void *ctx, const struct tls_peer *cert, struct err *e)
{
    const struct page_peer *p = ctx;
    struct cert_identity who;
    int rc = cert_identity(&who, cert, e);
    if (rc == 0 && strcmp(who.name, p->name) != 0)
        rc = err_set(e, SHOAL_EINVAL, "it should be '%s', but its certificate is for '%s'", p->name,
                     who.name);
    if (rc == 0 && !(who.roles & ROLE_NODE))
        rc = err_set(e, SHOAL_EINVAL, "the certificate of '%s' does not have the role node",
                     who.name);
    return rc;
}

/* NULL: out of memory, or there are too many. */
static struct page_peer *peer_of(struct page_links *m, const struct request *r)
{
    struct page_peer *p = m->peers;
    struct err e = {0};
    while (p && (strcmp(p->address, r->pages_from) != 0 || strcmp(p->name, r->pages_name) != 0))
        p = p->next;
    if (p || m->n_peers == MAX_PEERS || !(p = mem_zalloc(sizeof(*p))))
        return p;
    snprintf(p->address, sizeof(p->address), "%s", r->pages_from);
    snprintf(p->name, sizeof(p->name), "%s", r->pages_name);
    p->link = (struct page_link){.bytes_per_s = (double)m->link, .given = m->link > 0};
    struct tls_client *tls = listen_is_unix(p->address) ? NULL : m->tls;
    const struct http_client_opts o = {
        .address = p->address, .tls = tls, .check_peer = tls ? check_peer : NULL, .ctx = p};
    if (http_client_create(&p->client, m->loop, &o, &e) < 0) {
        mem_free(p);
        return NULL;
    }
    p->next = m->peers;
    m->peers = p;
    m->n_peers++;
    return p;
}

/* ---- into the engine ---- */

static void parcel_free(struct parcel *x)
{
    if (!x)
        return;
    mem_free(x->tokens);
    mem_free(x->data);
    mem_free(x);
}

/* On the engine's thread. */
static void on_imported(struct page_job *j)
{
    parcel_free((struct parcel *)(void *)j);
}

static struct parcel *parcel_create(const struct page_fetch *f, uint32_t n_pages, size_t page_bytes)
{
    const size_t n_tokens = (size_t)n_pages * PAGE_EXCHANGE_TOKENS;
    struct parcel *x = mem_zalloc(sizeof(*x));
    if (!x)
        return NULL;
    x->tokens = mem_alloc(n_tokens * sizeof(*x->tokens));
    x->data = mem_alloc(n_pages * page_bytes);
    if (!x->tokens || !x->data) {
        parcel_free(x);
        return NULL;
    }
    memcpy(x->tokens, f->tokens, n_tokens * sizeof(*x->tokens));
    x->job = (struct page_job){
        .done = on_imported,
        .import = true,
        .scope = page_exchange_scope(f->shared ? 0 : request_client_id(&f->request->client),
                                     registry_adapter(f->model)),
        .tokens = x->tokens,
        .n_tokens = (uint32_t)n_tokens,
        .data = x->data};
    return x;
}

/* ---- a fetch ---- */

static struct fetch *fetch_of(struct http_call *c)
{
    return EXECUTOR_OF(c, struct fetch, call);
}

/* The end, at the loop's next turn: the call may be the caller. */
static void end(struct fetch *x, bool failed)
{
    if (x->over)
        return;
    x->over = true;
    x->failed = failed;
    loop_post(x->all->loop, &x->ended);
}

static void on_ended_task(struct executor_task *t)
{
    struct fetch *x = EXECUTOR_OF(t, struct fetch, ended);
    struct page_links *m = x->all;
    struct page_fetch *of = x->of;
    const uint64_t now = clock_ns();
    struct fetch **at = &m->running;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    loop_timer_clear(m->loop, &x->limit);
    http_call_cancel(&x->call);
    if (x->n_have > 0) {
        page_worth_saw(&x->peer->link, x->n_have * x->page_bytes, x->first_ns - x->start_ns,
                       now - x->first_ns, now);
        atomic_store(&m->counts->bytes_per_s, (uint64_t)x->peer->link.bytes_per_s);
        atomic_fetch_add(&m->counts->n_tokens, (uint64_t)x->n_have * PAGE_EXCHANGE_TOKENS);
        atomic_fetch_add(&m->counts->n_bytes, (uint64_t)x->n_have * x->page_bytes);
        x->parcel->job.n_pages = x->n_have;
        page_exchange_submit(registry_engine(of->model), &x->parcel->job);
        x->parcel = NULL;
    }
    if (x->failed) {
        page_worth_failed(&x->peer->link, now);
        atomic_fetch_add(&m->counts->n_failed, 1);
    }
    parcel_free(x->parcel);
    buf_fini(&x->in);
    mem_free(x);
    m->n_running--;
    of->done(of);
}

static int take_page(struct fetch *x, const struct grpc_frame *f, struct err *e)
{
    if (f->packed || x->n_have == x->n_wanted)
        return err_set(e, SHOAL_EFORMAT, "more than was asked for");
    if (!pages_key_next(&x->key, x->of->tokens + (size_t)x->n_have * PAGE_EXCHANGE_TOKENS))
        return err_set(e, SHOAL_EINTERNAL, "no hash");
    int rc = pages_pb_read_page(x->parcel->data + x->n_have * x->page_bytes, x->n_have, &x->key,
                                x->page_bytes, f->p, f->n, e);
    x->n_have += rc == 0;
    return rc;
}

static void on_data(struct http_call *c, const char *bytes, size_t n)
{
    struct fetch *x = fetch_of(c);
    struct grpc_frame f;
    struct err e = {0};
    size_t at = 0;
    int rc;
    if (x->over)
        return;
    if (x->first_ns == 0)
        x->first_ns = clock_ns();
    buf_put(&x->in, bytes, n);
    rc = x->in.rc < 0 ? x->in.rc : 1;
    while (rc > 0 && at < x->in.len) {
        rc = grpc_frame_next(&f, (const uint8_t *)x->in.data + at, x->in.len - at,
                             PAGES_PB_MAX_CHUNK);
        if (rc <= 0)
            break;
        at += f.bytes;
        rc = take_page(x, &f, &e) < 0 ? e.code : 1;
    }
    if (rc < 0) {
        log_warn("cluster", "node %s sent pages that cannot be used: %s", x->peer->name,
                 e.code ? e.msg : err_text(rc));
        end(x, true);
        return;
    }
    memmove(x->in.data, x->in.data + at, x->in.len - at);
    x->in.len -= at;
}

static void on_head(struct http_call *c, int status, const struct http_header *h, size_t n)
{
    (void)h;
    (void)n;
    if (status != 200)
        end(fetch_of(c), true);
}

/* A node that has fewer pages than hoped for is no failure. */
static void on_ended(struct http_call *c, const struct http_header *h, size_t n)
{
    (void)h;
    (void)n;
    end(fetch_of(c), false);
}

static void on_failed(struct http_call *c, int code, const char *message)
{
    struct fetch *x = fetch_of(c);
    (void)code;
    log_debug("cluster", "no pages from node %s: %s", x->peer->name, message);
    end(x, true);
}

static void on_limit(struct executor_timer *t)
{
    struct fetch *x = LOOP_OF(t, struct fetch, limit);
    end(x, true);
}

static int ask(struct fetch *x, const struct pages_request *r)
{
    static const struct http_header headers[] = {{"content-type", "application/grpc"},
                                                 {"te", "trailers"}};
    static const struct http_call_ops ops = {
        .head = on_head, .data = on_data, .ended = on_ended, .failed = on_failed};
    char head[GRPC_HEAD_BYTES] = {0};
    struct buf b;
    buf_init(&b, PAGES_PB_MAX_REQUEST + GRPC_HEAD_BYTES);
    buf_put(&b, head, sizeof(head));
    x->call = (struct http_call){.ops = &ops};
    int rc = pages_pb_put_request(&b, r);
    if (rc == 0) {
        grpc_frame_head(head, b.len - GRPC_HEAD_BYTES, false);
        memcpy(b.data, head, sizeof(head));
        rc = http_call_start(x->peer->client, &x->call, "POST", "/shoal.node.v1.Node/Pages",
                             headers, 2, b.data, b.len, true);
    }
    buf_fini(&b);
    return rc;
}

/* How many pages are worth it; 0: none. */
static uint32_t n_worth(const struct page_fetch *f, const struct page_peer *p, size_t page_bytes,
                        double *prefill_ns, uint64_t now)
{
    double token_ns;
    const double held = f->request->pages_part * f->n_tokens;
    registry_speed(f->model, prefill_ns, &token_ns);
    /* the last token is always computed */
    uint32_t most = f->n_tokens > 1 ? (f->n_tokens - 1) / PAGE_EXCHANGE_TOKENS : 0;
    uint32_t n = (uint32_t)(held / PAGE_EXCHANGE_TOKENS);
    return page_worth(&p->link, n < most ? n : most, page_bytes, *prefill_ns, now);
}

static bool start(struct page_source *s, struct page_fetch *f)
{
    struct page_links *m = (struct page_links *)(void *)s;
    const size_t page_bytes = page_exchange_bytes(registry_engine(f->model));
    const uint8_t *version = registry_sum(f->model);
    const uint64_t now = clock_ns();
    double prefill_ns;
    struct page_peer *p =
        page_bytes && version && m->n_running < MAX_FETCHES ? peer_of(m, f->request) : NULL;
    const uint32_t n = p ? n_worth(f, p, page_bytes, &prefill_ns, now) : 0;
    struct fetch *x = n > 0 ? mem_zalloc(sizeof(*x)) : NULL;
    if (!x)
        return false;
    const struct pages_request r = {.model = f->model->name,
                                    .version = version,
                                    .client = f->request->client.name,
                                    .shares_cache = f->shared,
                                    .page_bytes = page_bytes,
                                    .tokens = f->tokens,
                                    .n_tokens = n * PAGE_EXCHANGE_TOKENS};
    *x = (struct fetch){.all = m,
                        .of = f,
                        .peer = p,
                        .limit.fn = on_limit,
                        .ended.fn = on_ended_task,
                        .parcel = parcel_create(f, n, page_bytes),
                        .page_bytes = page_bytes,
                        .n_wanted = n,
                        .start_ns = now};
    buf_init(&x->in, 2 * PAGES_PB_MAX_CHUNK);
    if (!x->parcel || !pages_key_begin(&x->key, &r) || ask(x, &r) < 0) {
        parcel_free(x->parcel);
        buf_fini(&x->in);
        mem_free(x);
        return false;
    }
    m->n_running++;
    x->next = m->running;
    m->running = x;
    atomic_fetch_add(&m->counts->n_fetches, 1);
    loop_timer_set(m->loop, &x->limit,
                   now + page_worth_limit_ns(&p->link, n, page_bytes, prefill_ns));
    return true;
}

/* ---- lifetime ---- */

int page_links_create(struct page_links **out, struct loop *l, struct tls_client *tls, size_t link,
                      struct page_counts *counts, struct err *e)
{
    static const struct page_source_ops ops = {start};
    struct page_links *m = mem_zalloc(sizeof(*m));
    *out = m;
    if (!m)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the pages of other nodes");
    *m = (struct page_links){
        .source.ops = &ops, .loop = l, .tls = tls, .link = link, .counts = counts};
    return 0;
}

void page_links_stop(struct page_links *m)
{
    for (struct fetch *x = m ? m->running : NULL; x; x = x->next)
        end(x, true);
}

void page_links_destroy(struct page_links *m)
{
    if (!m)
        return;
    while (m->peers) {
        struct page_peer *p = m->peers;
        m->peers = p->next;
        http_client_destroy(p->client);
        mem_free(p);
    }
    loop_flush(m->loop);
    mem_free(m);
}

struct page_source *page_links_source(struct page_links *m)
{
    return &m->source;
}

/* fetch_peer.c - see fetch_peer.h. */
#include "cluster/store/fetch_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/trust/cert.h"
#include "cluster/trust/roles.h"
#include "cluster/store/byte_rate.h"
#include "cluster/store/fetch_pb.h"
#include "depot/source/byte_sink.h"
#include "depot/store/model_manifest.h"
#include "net/grpc_frame.h"
#include "net/http_client.h"
#include "net/loop.h"

#define MS_NS 1000000u
#define TURN_MS 50
#define GRPC_NOT_FOUND 5
#define GRPC_PERMISSION_DENIED 7
#define GRPC_RESOURCE_EXHAUSTED 8
#define GRPC_UNAVAILABLE 14

struct fetch_peer {
    struct fetch_transfer transfer; /* first */
    struct fetch_transfer_opts opts;
    char name[CERT_NAME_BYTES];
    struct loop *loop;
    struct http_client *client;
    struct http_call call;
    struct buf in;
    /* of the call that runs */
    struct model_manifest *manifest; /* filled in; NULL: fetching a file */
    const struct byte_sink *to;
    struct err *e;
    int rc;
    bool over, got_manifest;
    uint64_t heard_ns, wait_until_ns;
};

static struct fetch_peer *peer_of(struct http_call *c)
{
    return EXECUTOR_OF(c, struct fetch_peer, call);
}

/* ---- what comes ---- */

static void end(struct fetch_peer *p, int rc)
{
    p->rc = p->rc < 0 ? p->rc : rc;
    p->over = true;
}

static int take_chunk(struct fetch_peer *p, const uint8_t *at, size_t n)
{
    struct fetch_chunk c;
    struct model_manifest unwanted;
    model_manifest_init(&unwanted);
    int rc = fetch_pb_read_chunk(&c, p->manifest && !p->got_manifest ? p->manifest : &unwanted,
                                 p->opts.model, at, n, p->e);
    model_manifest_fini(&unwanted);
    if (rc < 0)
        return rc;
    if (c.manifest != (p->manifest != NULL) || (c.manifest && p->got_manifest))
        return err_set(p->e, SHOAL_EFORMAT, "its answer does not match the request");
    p->got_manifest |= c.manifest;
    if (c.manifest)
        return 0;
    uint64_t now = clock_ns(), wait = byte_rate_take(p->opts.rate, c.n_data, now);
    p->wait_until_ns = wait ? now + wait : 0;
    return p->to->write(p->to->ctx, c.data, c.n_data, p->e);
}

/* Whole messages, as long as the rate allows. */
static void pump(struct fetch_peer *p)
{
    struct grpc_frame f;
    size_t at = 0;
    int rc = 1;
    while (rc > 0 && at < p->in.len && !p->wait_until_ns) {
        rc = grpc_frame_next(&f, (const uint8_t *)p->in.data + at, p->in.len - at,
                             FETCH_PB_MAX_CHUNK);
        if (rc <= 0)
            break;
        if (f.packed)
            rc = err_set(p->e, SHOAL_EFORMAT, "it sent a damaged message");
        else
            rc = take_chunk(p, f.p, f.n);
        at += f.bytes;
        rc = rc < 0 ? rc : 1;
    }
    if (rc < 0) {
        if (p->e->code != rc)
            err_set(p->e, rc, "it sent a damaged message");
        http_call_cancel(&p->call);
        end(p, rc);
        return;
    }
    memmove(p->in.data, p->in.data + at, p->in.len - at);
    p->in.len -= at;
    if (p->wait_until_ns)
        http_call_pause(&p->call);
}

static void on_data(struct http_call *c, const char *bytes, size_t n)
{
    struct fetch_peer *p = peer_of(c);
    p->heard_ns = clock_ns();
    buf_put(&p->in, bytes, n);
    if (p->in.rc < 0) {
        http_call_cancel(c);
        end(p, err_set(p->e, p->in.rc, "it sends more than allowed"));
    } else if (!p->wait_until_ns) {
        pump(p);
    }
}

/* The gRPC status in headers or trailers: 0, an error with its text, or 1: there is none. */
static int judge(struct fetch_peer *p, const struct http_header *h, size_t n)
{
    const char *message = NULL;
    int status = -1;
    for (size_t i = 0; i < n; i++)
        if (strcmp(h[i].name, "grpc-status") == 0)
            status = (int)strtol(h[i].value, NULL, 10);
        else if (strcmp(h[i].name, "grpc-message") == 0)
            message = h[i].value;
    if (status <= 0)
        return status < 0 ? 1 : 0;
    int code = SHOAL_EIO;
    if (status == GRPC_NOT_FOUND)
        code = SHOAL_ENOTFOUND;
    else if (status == GRPC_PERMISSION_DENIED)
        code = SHOAL_EINVAL;
    else if (status == GRPC_RESOURCE_EXHAUSTED || status == GRPC_UNAVAILABLE)
        code = SHOAL_EBUSY;
    return err_set(p->e, code, "it refuses: %.200s", message ? message : "no reason given");
}

static void on_head(struct http_call *c, int status, const struct http_header *h, size_t n)
{
    struct fetch_peer *p = peer_of(c);
    int rc = judge(p, h, n);
    p->heard_ns = clock_ns();
    if (status != 200)
        rc = err_set(p->e, SHOAL_EIO, "it answers with HTTP status %d", status);
    if (rc < 0) {
        http_call_cancel(c);
        end(p, rc);
    }
}

static void on_ended(struct http_call *c, const struct http_header *h, size_t n)
{
    struct fetch_peer *p = peer_of(c);
    int rc = judge(p, h, n);
    if (rc == 1)
        rc = err_set(p->e, SHOAL_EIO, "it broke off");
    else if (rc == 0 && p->in.len > 0)
        rc = err_set(p->e, SHOAL_EFORMAT, "it sent an incomplete message");
    end(p, rc);
}

static void on_failed(struct http_call *c, int code, const char *message)
{
    struct fetch_peer *p = peer_of(c);
    (void)code;
    end(p, err_set(p->e, SHOAL_EIO, "%.200s", message));
}

/* ---- a call ---- */

static void wait_over(struct fetch_peer *p)
{
    while (!p->over) {
        int turn_ms = TURN_MS;
        uint64_t now = clock_ns();
        if (p->wait_until_ns > now && (p->wait_until_ns - now) / MS_NS < TURN_MS)
            turn_ms = (int)((p->wait_until_ns - now) / MS_NS) + 1;
        loop_turn(p->loop, turn_ms);
        now = clock_ns();
        if (p->over)
            break;
        if (atomic_load_explicit(p->opts.stop, memory_order_relaxed)) {
            http_call_cancel(&p->call);
            end(p, err_set(p->e, SHOAL_ECANCELLED, "stopped"));
        } else if (p->wait_until_ns && now >= p->wait_until_ns) {
            p->wait_until_ns = 0;
            p->heard_ns = now;
            pump(p);
            if (!p->wait_until_ns && !p->over)
                http_call_resume(&p->call);
        } else if (!p->wait_until_ns && now - p->heard_ns > (uint64_t)p->opts.silent_ms * MS_NS) {
            http_call_cancel(&p->call);
            end(p, err_set(p->e, SHOAL_EIO, "it is silent"));
        }
    }
}

static int ask(struct fetch_peer *p, const struct fetch_request *r, struct err *e)
{
    static const struct http_header headers[] = {{"content-type", "application/grpc"},
                                                 {"te", "trailers"}};
    static const struct http_call_ops ops = {
        .head = on_head, .data = on_data, .ended = on_ended, .failed = on_failed};
    char head[GRPC_HEAD_BYTES] = {0};
    struct err none = {0};
    struct buf b;
    buf_init(&b, FETCH_PB_MAX_REQUEST + GRPC_HEAD_BYTES);
    buf_put(&b, head, sizeof(head));
    buf_clear(&p->in);
    p->call = (struct http_call){.ops = &ops};
    p->e = e ? e : &none;
    *p->e = none;
    p->rc = 0;
    p->over = p->got_manifest = false;
    p->wait_until_ns = 0;
    p->heard_ns = clock_ns();
    int rc = fetch_pb_put_request(&b, r);
    if (rc == 0) {
        grpc_frame_head(head, b.len - GRPC_HEAD_BYTES, false);
        memcpy(b.data, head, sizeof(head));
        rc = http_call_start(p->client, &p->call, "POST", "/shoal.node.v1.Node/Fetch", headers, 2,
                             b.data, b.len, true);
    }
    buf_fini(&b);
    if (rc < 0)
        return err_set(e, rc, "cannot request the model: %s", err_text(rc));
    wait_over(p);
    p->e = NULL;
    return p->rc;
}

static int get_manifest(struct fetch_transfer *t, struct model_manifest *m, struct err *e)
{
    struct fetch_peer *p = (struct fetch_peer *)(void *)t;
    struct fetch_request r = {.manifest = true};
    memcpy(r.model, p->opts.model, SHA256_BYTES);
    p->manifest = m;
    int rc = ask(p, &r, e);
    p->manifest = NULL;
    return rc == 0 && !p->got_manifest ? err_set(e, SHOAL_EFORMAT, "it sent no manifest") : rc;
}

static int get_file(struct fetch_transfer *t, const struct model_manifest *m, uint32_t i,
                    uint64_t offset, const struct byte_sink *to, struct err *e)
{
    struct fetch_peer *p = (struct fetch_peer *)(void *)t;
    struct fetch_request r = {.file = i, .offset = offset};
    (void)m;
    memcpy(r.model, p->opts.model, SHA256_BYTES);
    p->to = to;
    int rc = ask(p, &r, e);
    p->to = NULL;
    return rc;
}

/* ---- lifetime ---- */

/* Every holder of a certificate of the shoal is a member, but only nodes have models. */
static int check_peer(void *ctx, const struct tls_peer *cert, struct err *e)
{
    const struct fetch_peer *p = ctx;
    struct cert_identity who;
    int rc = cert_identity(&who, cert, e);
    if (rc == 0 && p->name[0] && strcmp(who.name, p->name) != 0)
        rc = err_set(e, SHOAL_EINVAL, "it should be '%s', but its certificate is for '%s'", p->name,
                     who.name);
    if (rc == 0 && !(who.roles & ROLE_NODE))
        rc = err_set(e, SHOAL_EINVAL, "the certificate of '%s' does not have the role node",
                     who.name);
    return rc;
}

static void close_peer(struct fetch_transfer *t)
{
    struct fetch_peer *p = (struct fetch_peer *)(void *)t;
    http_call_cancel(&p->call);
    http_client_destroy(p->client);
    if (p->loop)
        loop_flush(p->loop);
    loop_destroy(p->loop);
    buf_fini(&p->in);
    mem_free(p);
}

int fetch_peer_open(struct fetch_transfer **out, const char *address, const char *name,
                    struct tls_client *tls, const struct fetch_transfer_opts *o, struct err *e)
{
    static const struct fetch_transfer_ops ops = {get_manifest, get_file, close_peer};
    struct fetch_peer *p = mem_zalloc(sizeof(*p));
    *out = NULL;
    if (!p)
        return err_set(e, SHOAL_ENOMEM, "connection to a node");
    const struct http_client_opts ho = {
        .address = address, .tls = tls, .check_peer = tls ? check_peer : NULL, .ctx = p};
    p->transfer.ops = &ops;
    p->opts = *o;
    snprintf(p->name, sizeof(p->name), "%s", name ? name : "");
    buf_init(&p->in, 2 * FETCH_PB_MAX_CHUNK);
    int rc = loop_create(&p->loop, e);
    if (rc == 0)
        rc = http_client_create(&p->client, p->loop, &ho, e);
    if (rc < 0) {
        close_peer(&p->transfer);
        return rc;
    }
    *out = &p->transfer;
    return 0;
}

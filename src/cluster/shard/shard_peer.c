/* shard_peer.c - see shard_peer.h. */
#include "cluster/shard/shard_peer.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "shoal/shoal_version.h"

#define CONNECT_MS 5000u
#define ANSWER_MS 5000u
#define TRIPS 3u
#define PROBE_BYTES ((size_t)256 << 10)

int shard_peer_await(struct shard_peer *p, enum shard_msg_kind kind, struct shard_frame *f,
                     uint32_t timeout_ms, struct err *e)
{
    struct shard_fail fail;
    int rc = shard_link_receive(p->link, f, timeout_ms, e);
    if (rc == 0)
        return err_set(e, SHOAL_EDEADLINE, "%s does not answer", p->name);
    if (rc < 0)
        return rc;
    if (f->kind == SHARD_FAIL && kind != SHARD_FAIL) {
        rc = shard_fail_read(&fail, f, e);
        return rc < 0 ? rc : err_set(e, fail.code, "%.*s", (int)fail.text.n, fail.text.p);
    }
    return f->kind == kind
               ? 0
               : err_set(e, SHOAL_EFORMAT, "%s sends messages that do not belong here", p->name);
}

static int greet(struct shard_peer *p, struct err *e)
{
    struct shard_welcome w;
    struct shard_frame f;
    struct buf b;
    buf_init(&b, 4096);
    shard_hello_put(&b, &(struct shard_hello){{SHOAL_VERSION, strlen(SHOAL_VERSION)}});
    int rc = shard_link_send(p->link, &b, e);
    buf_fini(&b);
    if (rc == 0)
        rc = shard_peer_await(p, SHARD_WELCOME, &f, ANSWER_MS, e);
    if (rc == 0)
        rc = shard_welcome_read(&w, &f, e);
    if (rc < 0)
        return rc;
    if (!str_is(w.version, SHOAL_VERSION))
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "%s runs Shoal %.*s and this node " SHOAL_VERSION
                       ": one model needs one version",
                       p->name, (int)w.version.n, w.version.p);
    p->memory_bytes = w.memory_bytes;
    p->rate = w.rate;
    p->n_cores = w.n_cores;
    return 0;
}

int shard_peer_open(struct shard_peer *out, const char *address, struct tls_client *tls,
                    struct err *e)
{
    *out = (struct shard_peer){.link = NULL};
    snprintf(out->address, sizeof(out->address), "%s", address);
    int rc = shard_link_open(&out->link, address, tls, CONNECT_MS, e);
    if (rc < 0)
        return rc;
    snprintf(out->name, sizeof(out->name), "%s", shard_link_peer(out->link));
    rc = greet(out, e);
    if (rc < 0)
        shard_peer_close(out);
    return rc;
}

void shard_peer_close(struct shard_peer *p)
{
    shard_link_close(p->link);
    p->link = NULL;
}

static int echo(struct shard_peer *p, size_t n, double *took_s, struct err *e)
{
    struct shard_frame f;
    struct buf b;
    buf_init(&b, PROBE_BYTES + 64);
    shard_echo_put(&b, n);
    const uint64_t t0 = clock_ns();
    int rc = shard_link_send(p->link, &b, e);
    buf_fini(&b);
    if (rc == 0)
        rc = shard_peer_await(p, SHARD_ECHOED, &f, ANSWER_MS, e);
    *took_s = (double)(clock_ns() - t0) / 1e9;
    return rc;
}

int shard_peer_measure(struct shard_peer *p, struct err *e)
{
    double best = 0, took = 0;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < TRIPS; i++) {
        rc = echo(p, 0, &took, e);
        best = i == 0 || took < best ? took : best;
    }
    if (rc == 0)
        rc = echo(p, PROBE_BYTES, &took, e);
    if (rc < 0)
        return rc;
    p->rtt_s = best;
    p->link_rate = took > best ? PROBE_BYTES / (took - best) : 0;
    return 0;
}

/* dial.c - see dial.h. */
#include "net/dial.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Hands the descriptor over. */
static void connected(struct dial *d)
{
    int fd = d->io.fd;
    d->io.fd = -1;
    d->fn(d->ctx, fd, NULL);
}

static void try_addresses(struct dial *d)
{
    int why = EADDRNOTAVAIL;
    for (; d->at < d->addrs.n; d->at++) {
        const struct sockaddr *addr = (const struct sockaddr *)(void *)&d->addrs.at[d->at].addr;
        d->io.fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        int rc = d->io.fd < 0 ? -1 : connect(d->io.fd, addr, d->addrs.at[d->at].n_addr);
        if (rc == 0) {
            connected(d);
            return;
        }
        why = errno;
        if (d->io.fd >= 0 && why == EINPROGRESS &&
            loop_io_add(d->loop, &d->io, EPOLLOUT, NULL) == 0)
            return;
        if (d->io.fd >= 0)
            close(d->io.fd);
        d->io.fd = -1;
    }
    d->fn(d->ctx, -1, strerror(why));
}

static void on_connect(struct loop_io *io, uint32_t events)
{
    struct dial *d = LOOP_OF(io, struct dial, io);
    int why = 0;
    socklen_t n = sizeof(why);
    (void)events;
    if (io->fd < 0)
        return; /* cancelled in this turn */
    if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &why, &n) < 0)
        why = errno;
    loop_io_del(d->loop, io);
    if (why == 0) {
        connected(d);
        return;
    }
    close(io->fd);
    io->fd = -1;
    if (++d->at < d->addrs.n)
        try_addresses(d);
    else
        d->fn(d->ctx, -1, strerror(why));
}

static void on_resolved(void *ctx, int code, const struct resolve_answer *answer,
                        const char *message)
{
    struct dial *d = ctx;
    d->lookup = NULL;
    d->addrs = *answer;
    if (code < 0)
        d->fn(d->ctx, -1, message);
    else
        try_addresses(d);
}

void dial_start(struct dial *d, struct loop *l, const char *address, dial_fn fn, void *ctx)
{
    struct err e = {0};
    *d = (struct dial){.loop = l, .fn = fn, .ctx = ctx, .io = {.fd = -1, .fn = on_connect}};
    if (resolve_start(&d->lookup, &d->addrs, l, address, on_resolved, d, &e) < 0)
        fn(ctx, -1, e.msg);
    else if (!d->lookup)
        try_addresses(d);
}

void dial_cancel(struct dial *d)
{
    if (!d->loop)
        return;
    resolve_cancel(d->lookup);
    d->lookup = NULL;
    if (d->io.fd < 0)
        return;
    loop_io_del(d->loop, &d->io);
    close(d->io.fd);
    d->io.fd = -1;
}

/* wyoming_door.c - see wyoming_door.h: the listener and its connections. */
#include "gateway/wyoming/wyoming_door.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "gateway/gw.h"
#include "gateway/wyoming/wyoming_turn.h"
#include "net/listen.h"
#include "net/peers.h"
#include "net/sock.h"
#include "wire/wyoming.h"

#define MAX_CONNS 32u
#define SCRATCH_BYTES ((size_t)64 << 10)
#define MAX_QUEUED ((size_t)4 << 20) /* a client that does not read */

struct conn {
    struct sock sock; /* first */
    struct wyoming_door *door;
    struct conn *prev, *next;
    struct peer *account; /* held */
    struct wyoming_turn *turn;
    struct executor_task release, cut;
};

struct wyoming_door {
    struct gw_loop *gl;
    struct loop_io io;
    char address[300];
    struct conn *conns;
    uint32_t n_conns;
    char scratch[SCRATCH_BYTES];
};

static struct conn *of(struct sock *s)
{
    return (struct conn *)(void *)s; /* its first member */
}

static void on_release(struct executor_task *t)
{
    struct conn *c = LOOP_OF(t, struct conn, release);
    sock_fini(&c->sock);
    mem_free(c);
}

/* Out of the list; freed at the end of the loop's turn. */
static void leave(struct conn *c)
{
    struct wyoming_door *d = c->door;
    *(c->prev ? &c->prev->next : &d->conns) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    d->n_conns--;
    loop_forget(d->gl->loop, &c->cut);
    wyoming_turn_destroy(c->turn);
    c->turn = NULL;
    peers_leave(c->account);
    c->account = NULL;
    c->release.fn = on_release;
    loop_later(d->gl->loop, &c->release);
}

static void on_closed(struct sock *s, int why)
{
    (void)why;
    leave(of(s));
}

static void on_ended(struct sock *s)
{
    sock_finish(s, false);
}

static void on_drained(struct sock *s)
{
    (void)s;
}

/* ---- what a turn writes ---- */

static void on_cut(struct executor_task *t)
{
    sock_break(&LOOP_OF(t, struct conn, cut)->sock);
}

static void on_send(void *ctx, const char *type, const char *data, size_t n, const void *payload,
                    size_t n_payload)
{
    struct conn *c = ctx;
    if (sock_queued(&c->sock) > MAX_QUEUED) { /* not here: it would free the turn that sends */
        c->cut.fn = on_cut;
        loop_later(c->door->gl->loop, &c->cut);
        return;
    }
    wyoming_put(sock_put(&c->sock), type, data, n, payload, n_payload);
}

static void on_room(void *ctx)
{
    sock_again(&((struct conn *)ctx)->sock);
}

/* ---- events of the client ---- */

static size_t on_data(struct sock *s, const char *p, size_t n)
{
    struct conn *c = of(s);
    size_t used = 0;
    while (c->turn && !wyoming_turn_full(c->turn)) {
        struct wyoming_event ev;
        struct err e = {0};
        size_t want;
        const int64_t took = wyoming_next(&ev, p + used, n - used, &want, &e);
        if (took == 0) {
            s->want = want > n - used ? want : 0;
            break;
        }
        s->want = 0;
        if (took < 0) { /* where the next event begins is not known */
            wyoming_turn_error(c->turn, "invalid_event", e.msg);
            log_info("wyoming", "closed a connection: %s", e.msg);
            sock_finish(s, true);
            return n;
        }
        wyoming_turn_event(c->turn, &ev);
        wyoming_free(&ev);
        used += (size_t)took;
    }
    return used;
}

static const struct sock_ops ops = {
    .data = on_data, .ended = on_ended, .closed = on_closed, .drained = on_drained};

/* ---- the listener ---- */

static void add(struct wyoming_door *d, int fd, const struct sockaddr_storage *from)
{
    static const struct wyoming_turn_ops turn_ops = {on_send, on_room};
    struct err e = {0};
    struct conn *c = d->n_conns < MAX_CONNS ? mem_zalloc(sizeof(*c)) : NULL;
    struct peer *account = c ? peers_join(d->gl->gw->peers, from) : NULL;
    if (!account) {
        mem_free(c);
        close(fd);
        return;
    }
    c->door = d;
    c->account = account;
    if (wyoming_turn_create(&c->turn, d->gl, account, &turn_ops, c, &e) < 0 ||
        sock_init(&c->sock, d->gl->loop, fd, NULL, &ops, d->scratch, SCRATCH_BYTES, &e) < 0) {
        if (!c->turn)
            close(fd);
        log_warn("wyoming", "a connection was refused: %s", e.msg);
        wyoming_turn_destroy(c->turn);
        peers_leave(account);
        mem_free(c);
        return;
    }
    c->next = d->conns;
    if (c->next)
        c->next->prev = c;
    d->conns = c;
    d->n_conns++;
}

static void on_accept(struct loop_io *io, uint32_t events)
{
    struct wyoming_door *d = LOOP_OF(io, struct wyoming_door, io);
    (void)events;
    for (;;) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof(from);
        const int fd =
            accept4(io->fd, (struct sockaddr *)(void *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        add(d, fd, &from);
    }
}

int wyoming_door_open(struct wyoming_door **out, struct gw_loop *gl, const char *address,
                      struct err *e)
{
    const char *plain = strncmp(address, "tcp://", 6) == 0 ? address + 6 : address;
    struct wyoming_door *d = mem_zalloc(sizeof(*d));
    char name[256];
    *out = NULL;
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a listener");
    d->gl = gl;
    d->io.fd = -1;
    d->io.fn = on_accept;
    int rc = listen_open(&d->io.fd, plain, LISTEN_ALONE, e);
    if (rc == 0)
        rc = loop_io_add(gl->loop, &d->io, EPOLLIN, e);
    if (rc < 0) {
        if (d->io.fd >= 0)
            close(d->io.fd);
        mem_free(d);
        return err_wrap(e, "wyoming");
    }
    listen_address(d->io.fd, name, sizeof(name));
    snprintf(d->address, sizeof(d->address), "tcp://%s", name);
    *out = d;
    return 0;
}

void wyoming_door_close(struct wyoming_door *d)
{
    if (!d)
        return;
    loop_io_del(d->gl->loop, &d->io);
    close(d->io.fd);
    while (d->conns)
        sock_break(&d->conns->sock);
    loop_flush(d->gl->loop);
    mem_free(d);
}

const char *wyoming_door_address(const struct wyoming_door *d)
{
    return d->address;
}

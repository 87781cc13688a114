/* shard_link.c - see shard_link.h.  The TLS state is used by one thread at a time, under a lock;
 * waiting happens outside of it. */
#include "cluster/shard/shard_link.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/trust/cert.h"
#include "cluster/trust/roles.h"
#include "net/listen.h"
#include "net/tls.h"

#define SEND_MS 10000u /* a peer that takes nothing for this long is lost */
#define READ_BYTES ((size_t)64 << 10)

struct shard_link {
    int fd;
    struct tls_conn *tls;
    pthread_mutex_t tls_lock;  /* for the TLS state */
    pthread_mutex_t send_lock; /* frames are not mixed */
    _Atomic bool broken;
    char peer[CERT_NAME_BYTES];
    bool is_node;
    struct buf in;
    size_t used; /* bytes of the last frame */
};

static int broken(struct shard_link *l, struct err *e)
{
    const char *why = tls_conn_why(l->tls);
    atomic_store(&l->broken, true);
    return err_set(e, SHOAL_EIO, "the connection to %s broke%s%s", l->peer[0] ? l->peer : "a node",
                   why[0] ? ": " : "", why);
}

/* 1: ready; 0: not within the time. */
static int await(int fd, short events, uint64_t until_ns)
{
    for (;;) {
        const uint64_t now = clock_ns();
        const uint64_t left = now < until_ns ? (until_ns - now + 999999u) / 1000000u : 0;
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, left < 1000 ? (int)left : 1000);
        if (n > 0)
            return 1;
        if ((n == 0 || errno == EINTR) && clock_ns() < until_ns)
            continue;
        return 0;
    }
}

/* Only nodes of the shoal compute for each other. */
static int check_peer(struct shard_link *l, unsigned roles, struct err *e)
{
    struct cert_identity who;
    int rc = cert_identity(&who, tls_conn_peer(l->tls), e);
    if (rc < 0)
        return rc;
    if (!(who.roles & roles))
        return err_set(e, SHOAL_EINVAL,
                       "%s may not compute parts of models: its certificate has "
                       "no role node",
                       who.name);
    snprintf(l->peer, sizeof(l->peer), "%s", who.name);
    l->is_node = (who.roles & ROLE_NODE) != 0;
    return 0;
}

static int create(struct shard_link **out, int fd, struct err *e)
{
    struct shard_link *l = mem_zalloc(sizeof(*l));
    int on = 1;
    *out = l;
    if (!l) {
        close(fd);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a connection");
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    l->fd = fd;
    pthread_mutex_init(&l->tls_lock, NULL);
    pthread_mutex_init(&l->send_lock, NULL);
    buf_init(&l->in, SHARD_MSG_MAX_BODY + SHARD_MSG_HEAD + READ_BYTES);
    return 0;
}

void shard_link_close(struct shard_link *l)
{
    if (!l)
        return;
    tls_conn_destroy(l->tls);
    close(l->fd);
    pthread_mutex_destroy(&l->tls_lock);
    pthread_mutex_destroy(&l->send_lock);
    buf_fini(&l->in);
    mem_free(l);
}

int shard_link_adopt(struct shard_link **out, int fd, struct tls_conn *tls, struct err *e)
{
    struct shard_link *l;
    int rc = create(&l, fd, e);
    *out = NULL;
    if (rc < 0) {
        tls_conn_destroy(tls);
        return rc;
    }
    l->tls = tls;
    rc = check_peer(l, ROLE_NODE | ROLE_ADMIN, e);
    if (rc < 0)
        shard_link_close(l);
    else
        *out = l;
    return rc;
}

/* ---- connecting ---- */

static int connect_one(const struct addrinfo *a, uint64_t until_ns)
{
    int why = 0;
    socklen_t n = sizeof(why);
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return fd;
    if (errno == EINPROGRESS && await(fd, POLLOUT, until_ns) > 0 &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0 && why == 0)
        return fd;
    errno = why ? why : errno;
    close(fd);
    return -1;
}

static int connect_to(int *fd, const char *address, uint64_t until_ns, struct err *e)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list = NULL;
    char host[256];
    const char *port;
    *fd = -1;
    int rc = listen_split(address, host, sizeof(host), &port, e);
    if (rc < 0)
        return rc;
    rc = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
    if (rc != 0)
        return err_set(e, SHOAL_EIO, "%.200s: %s", address, gai_strerror(rc));
    for (const struct addrinfo *a = list; a && *fd < 0; a = a->ai_next)
        *fd = connect_one(a, until_ns);
    const int why = errno;
    freeaddrinfo(list);
    return *fd >= 0
               ? 0
               : err_set(e, SHOAL_EIO, "cannot reach the node %.200s: %s", address, strerror(why));
}

static int shake_hands(struct shard_link *l, const char *address, uint64_t until_ns, struct err *e)
{
    int rc;
    while ((rc = tls_conn_handshake(l->tls)) == SHOAL_EBUSY)
        if (!await(l->fd, tls_conn_wants_write(l->tls) ? POLLOUT : POLLIN, until_ns))
            return err_set(e, SHOAL_EIO, "the node %.200s does not answer", address);
    if (rc < 0)
        return broken(l, e);
    if (strcmp(tls_conn_protocol(l->tls), TLS_SHARD) != 0)
        return err_set(e, SHOAL_EUNSUPPORTED,
                       "the node %.200s does not compute parts of models: it is another version",
                       address);
    return check_peer(l, ROLE_NODE, e);
}

int shard_link_open(struct shard_link **out, const char *address, struct tls_client *tls,
                    uint32_t timeout_ms, struct err *e)
{
    const uint64_t until = clock_ns() + (uint64_t)timeout_ms * 1000000u;
    struct shard_link *l = NULL;
    int fd;
    *out = NULL;
    int rc = connect_to(&fd, address, until, e);
    if (rc == 0)
        rc = create(&l, fd, e);
    if (rc == 0)
        rc = tls_conn_connect(&l->tls, tls, fd, NULL, e);
    if (rc == 0)
        rc = shake_hands(l, address, until, e);
    if (rc < 0) {
        shard_link_close(l);
        return rc;
    }
    *out = l;
    return 0;
}

void shard_link_break(struct shard_link *l)
{
    atomic_store(&l->broken, true);
    shutdown(l->fd, SHUT_RDWR);
}

const char *shard_link_peer(const struct shard_link *l)
{
    return l->peer;
}

bool shard_link_is_node(const struct shard_link *l)
{
    return l->is_node;
}

/* ---- frames ---- */

static int send_all(struct shard_link *l, const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        pthread_mutex_lock(&l->tls_lock);
        ssize_t sent = atomic_load(&l->broken) ? SHOAL_EIO : tls_conn_write(l->tls, p, n);
        const bool wants_write = tls_conn_wants_write(l->tls);
        pthread_mutex_unlock(&l->tls_lock);
        if (sent > 0) {
            p += sent;
            n -= (size_t)sent;
        } else if (sent != SHOAL_EBUSY) {
            return broken(l, e);
        } else if (!await(l->fd, wants_write ? POLLOUT : POLLIN,
                          clock_ns() + (uint64_t)SEND_MS * 1000000u)) {
            return err_set(e, SHOAL_EDEADLINE, "%s takes no more bytes", l->peer);
        }
    }
    return 0;
}

int shard_link_send(struct shard_link *l, const struct buf *frames, struct err *e)
{
    if (frames->rc < 0)
        return err_set(e, frames->rc, "out of memory for a message");
    pthread_mutex_lock(&l->send_lock);
    int rc = send_all(l, frames->data, frames->len, e);
    pthread_mutex_unlock(&l->send_lock);
    return rc;
}

/* > 0: bytes were added; SHOAL_EBUSY: none are there. */
static int read_more(struct shard_link *l, struct err *e)
{
    char *at = buf_room(&l->in, READ_BYTES);
    if (!at)
        return err_set(e, l->in.rc, "out of memory for a message");
    pthread_mutex_lock(&l->tls_lock);
    ssize_t n = atomic_load(&l->broken) ? SHOAL_EIO : tls_conn_read(l->tls, at, READ_BYTES);
    pthread_mutex_unlock(&l->tls_lock);
    if (n > 0) {
        buf_used(&l->in, (size_t)n);
        return 1;
    }
    return n == SHOAL_EBUSY ? SHOAL_EBUSY : broken(l, e);
}

static void drop_used(struct shard_link *l)
{
    if (l->used == 0)
        return;
    memmove(l->in.data, l->in.data + l->used, l->in.len - l->used);
    l->in.len -= l->used;
    l->used = 0;
}

int shard_link_receive(struct shard_link *l, struct shard_frame *f, uint32_t timeout_ms,
                       struct err *e)
{
    const uint64_t until = clock_ns() + (uint64_t)timeout_ms * 1000000u;
    drop_used(l);
    for (;;) {
        int rc = shard_frame_next(f, (const uint8_t *)l->in.data, l->in.len, e);
        if (rc > 0)
            l->used = f->bytes;
        if (rc != 0)
            return rc < 0 ? err_wrap(e, "%s", l->peer) : rc;
        rc = read_more(l, e);
        if (rc == SHOAL_EBUSY && !await(l->fd, POLLIN, until))
            return 0;
        if (rc < 0 && rc != SHOAL_EBUSY)
            return rc;
    }
}

/* bench_overload_load.c - clients of an HTTP server, at a fixed rate or one request after the
 * other.  For bench/overload.js: they share the machine with the server, so they have to cost
 * little.
 *
 * Usage: bench_overload_load PORT PATH HEADER BODY WHOLE CLIENTS RATE SECONDS BUDGET_MS
 * POSTs BODY to 127.0.0.1:PORT, with one more HEADER ("" for none) and the request's number in
 * place of each @.  An answer with status 200 and the text WHOLE in it is complete. RATE 0: CLIENTS
 * clients send sequential requests, without a budget.  RATE above 0: that many requests per second,
 * whether or not earlier ones are answered.  A client waits for BUDGET_MS and then disconnects.
 * Prints {"sent", "ok", "late", "refused", "failed", "steady", "rate", "median_ms", "cpu_s"}.
 * ok: complete within the budget; steady: those of them that ended between one budget after the
 * start and the last request; rate: answers per second. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define MAX_CONNS 4096u
#define BYTES ((size_t)32 << 10) /* limit of an answer */
#define REQUEST_BYTES 4096u

struct conn {
    int fd;              /* -1: none */
    bool busy, reused;   /* a request is under way; the connection had one before */
    uint64_t began, end; /* of the request; end: when its budget runs out, 0: no budget */
    char out[REQUEST_BYTES], *in;
    size_t n_out, n_sent, n_in;
};

struct begun {
    struct conn *conn;
    uint64_t at;
};

struct load {
    struct sockaddr_in to;
    const char *path, *header, *body, *whole;
    double rate, seconds;
    uint64_t budget, began, last; /* ns; last: when the last request begins */
    int epoll;
    struct conn *conns; /* [n] */
    uint32_t n, n_busy;
    struct conn **kept, **closed; /* idle clients, with and without a connection */
    uint32_t n_kept, n_closed;
    struct begun *order; /* [max_sent]: deadlines come in the order of the requests */
    uint32_t oldest, max_sent;
    uint32_t sent, ok, late, refused, failed, steady;
    double *times; /* [ok], ms */
};

static _Noreturn void fail(const char *why, uint32_t n)
{
    fprintf(stderr, "bench_overload_load: ");
    fprintf(stderr, why, n);
    fprintf(stderr, "\n");
    exit(1);
}

static void hang_up(struct conn *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static bool dial(struct load *l, struct conn *c)
{
    const int one = 1;
    struct epoll_event ev = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return false;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c->reused = false;
    if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &ev) == 0 &&
        (connect(c->fd, (struct sockaddr *)&l->to, sizeof(l->to)) == 0 || errno == EINPROGRESS))
        return true;
    hang_up(c);
    return false;
}

/* Ends the request; the connection is kept or closed. */
static void count(struct load *l, struct conn *c, uint32_t *what, uint64_t now)
{
    c->busy = false;
    l->n_busy--;
    if (c->fd >= 0)
        l->kept[l->n_kept++] = c;
    else
        l->closed[l->n_closed++] = c;
    (*what)++;
    if (what != &l->ok)
        return;
    l->times[l->ok - 1] = (double)(now - c->began) / 1e6;
    l->steady += now > l->began + l->budget && now <= l->last;
}

/* false: the connection is broken. */
static bool send_more(struct conn *c)
{
    while (c->n_sent < c->n_out) {
        ssize_t k = send(c->fd, c->out + c->n_sent, c->n_out - c->n_sent, MSG_NOSIGNAL);
        if (k < 0)
            return errno == EAGAIN || errno == EINTR || errno == ENOTCONN || errno == EINPROGRESS;
        c->n_sent += (size_t)k;
    }
    return true;
}

/* A kept connection may have been closed meanwhile: then the request is sent on a new one. */
static void broken(struct load *l, struct conn *c, uint64_t now)
{
    const bool again = c->busy && c->reused && c->n_in == 0;
    hang_up(c);
    c->n_sent = 0;
    if (again && dial(l, c) && send_more(c))
        return;
    if (c->busy)
        count(l, c, &l->failed, now);
}

/* Formats the request with its number; false: it is too long. */
static bool fill(const struct load *l, struct conn *c)
{
    char body[REQUEST_BYTES], number[16];
    size_t n = 0;
    const size_t digits = (size_t)snprintf(number, sizeof(number), "%u", l->sent);
    for (const char *p = l->body; *p; p++) {
        const size_t k = *p == '@' ? digits : 1;
        if (n + k > sizeof(body))
            return false;
        memcpy(body + n, *p == '@' ? number : p, k);
        n += k;
    }
    int k = snprintf(c->out, sizeof(c->out),
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                     "%s%sContent-Length: %zu\r\n\r\n%.*s",
                     l->path, l->header, l->header[0] ? "\r\n" : "", n, (int)n, body);
    c->n_out = (size_t)k;
    return k > 0 && (size_t)k < sizeof(c->out);
}

static void ask(struct load *l, struct conn *c, uint64_t now)
{
    if (!fill(l, c))
        fail("the request has more than %u bytes", REQUEST_BYTES);
    l->order[l->sent] = (struct begun){c, now};
    c->busy = true;
    c->began = now;
    c->end = l->budget ? now + l->budget : 0;
    c->n_sent = c->n_in = 0;
    l->sent++;
    l->n_busy++;
    c->reused = c->fd >= 0;
    if ((c->fd < 0 && !dial(l, c)) || !send_more(c))
        broken(l, c, now);
}

/* The value of a header of an answer whose headers end at `end`; NULL: it has none. */
static const char *header(const char *p, const char *end, const char *name)
{
    const size_t n = strlen(name);
    while ((p = memmem(p, (size_t)(end - p), "\r\n", 2)) && p < end) {
        p += 2;
        if (strncasecmp(p, name, n) == 0 && p[n] == ':')
            return p + n + 1 + strspn(p + n + 1, " ");
    }
    return NULL;
}

/* Returns the outcome of a complete answer; NULL: it is not complete yet. */
static uint32_t *outcome(struct load *l, struct conn *c, uint64_t now, bool *keep)
{
    const char *end = memmem(c->in, c->n_in, "\r\n\r\n", 4);
    if (!end)
        return NULL;
    const char *body = end + 4, *length = header(c->in, end, "content-length");
    const char *connection = header(c->in, end, "connection");
    const size_t n = c->n_in - (size_t)(body - c->in);
    if (length ? n < strtoul(length, NULL, 10) : n < 5 || memcmp(body + n - 5, "0\r\n\r\n", 5) != 0)
        return NULL; /* no Content-Length: it is chunked */
    const unsigned long status = c->n_in > 12 ? strtoul(c->in + 9, NULL, 10) : 0;
    *keep = !connection || strncasecmp(connection, "close", 5) != 0;
    if (status != 200)
        return status == 429 || status == 503 || status == 504 ? &l->refused : &l->failed;
    if (!strstr(body, l->whole))
        return &l->failed;
    return c->end && now > c->end ? &l->late : &l->ok;
}

static void on_ready(struct load *l, struct conn *c, uint64_t now)
{
    bool keep = true;
    if (c->fd < 0)
        return;
    if (!send_more(c)) {
        broken(l, c, now);
        return;
    }
    for (;;) {
        if (c->n_in == BYTES - 1)
            c->n_in = 0; /* larger than any valid answer: give up on it */
        ssize_t k = recv(c->fd, c->in + c->n_in, BYTES - 1 - c->n_in, 0);
        if (k < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
            break;
        if (k <= 0) {
            broken(l, c, now);
            return;
        }
        c->n_in += (size_t)k;
        c->in[c->n_in] = '\0';
    }
    uint32_t *what = c->busy && c->n_in > 0 ? outcome(l, c, now, &keep) : NULL;
    if (what && !keep)
        hang_up(c);
    if (what)
        count(l, c, what, now);
}

/* Drops clients whose budget ran out; returns when the next one's will. */
static uint64_t expire(struct load *l, uint64_t now)
{
    for (; l->budget && l->oldest < l->sent; l->oldest++) {
        struct conn *c = l->order[l->oldest].conn;
        if (!c->busy || c->began != l->order[l->oldest].at)
            continue;
        if (now <= c->end)
            return c->end;
        hang_up(c);
        count(l, c, &l->late, now);
    }
    return UINT64_MAX;
}

/* An idle client, preferably with an open connection; NULL: all are busy. */
static struct conn *free_conn(struct load *l)
{
    while (l->n_kept > 0) {
        struct conn *c = l->kept[--l->n_kept];
        if (c->fd >= 0)
            return c;
        l->closed[l->n_closed++] = c; /* the server has closed it */
    }
    return l->n_closed > 0 ? l->closed[--l->n_closed] : NULL;
}

/* Sends the requests that are due; returns when the next one is. */
static uint64_t begin(struct load *l, uint64_t now)
{
    for (;;) {
        const uint64_t at = l->rate > 0.0 ? l->began + (uint64_t)(l->sent * 1e9 / l->rate) : now;
        if (at >= l->last || (l->rate <= 0.0 && l->n_busy == l->n))
            return UINT64_MAX;
        if (at > now)
            return at;
        struct conn *c = free_conn(l);
        if (!c || l->sent == l->max_sent)
            fail("more than %u requests at once", l->n_busy);
        ask(l, c, now);
    }
}

static void run(struct load *l)
{
    struct epoll_event ev[64];
    l->began = clock_ns();
    l->last = l->began + (uint64_t)(l->seconds * 1e9);
    for (;;) {
        uint64_t now = clock_ns();
        uint64_t next = expire(l, now), due = begin(l, now);
        if (l->n_busy == 0 && now >= l->last)
            return;
        next = due < next ? due : next;
        const uint64_t most = now + 100000000u;
        next = next < most ? next : most;
        int n =
            epoll_wait(l->epoll, ev, 64, next > now ? (int)((next - now + 999999u) / 1000000u) : 0);
        now = clock_ns();
        for (int i = 0; i < n; i++)
            on_ready(l, ev[i].data.ptr, now);
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(struct load *l)
{
    const double seconds = l->rate > 0.0 ? l->seconds - (double)l->budget / 1e9
                                         : (double)(clock_ns() - l->began) / 1e9;
    const uint32_t n = l->ok;
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    qsort(l->times, n, sizeof(*l->times), by_size);
    printf("{\"sent\":%u,\"ok\":%u,\"late\":%u,\"refused\":%u,\"failed\":%u,\"steady\":%u,"
           "\"rate\":%.3f,\"median_ms\":%.3f,\"cpu_s\":%.3f}\n",
           l->sent, l->ok, l->late, l->refused, l->failed, l->steady,
           (l->rate > 0.0 ? l->steady : l->ok) / seconds, n ? l->times[n / 2] : 0.0,
           (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
}

int main(int argc, char **argv)
{
    if (argc != 10) {
        fprintf(stderr,
                "usage: %s PORT PATH HEADER BODY WHOLE CLIENTS RATE SECONDS BUDGET_MS\n"
                "See the beginning of overload_load.c.\n",
                argv[0]);
        return 2;
    }
    struct load l = {.path = argv[2],
                     .header = argv[3],
                     .body = argv[4],
                     .whole = argv[5],
                     .rate = strtod(argv[7], NULL),
                     .seconds = strtod(argv[8], NULL),
                     .budget = (uint64_t)(strtod(argv[9], NULL) * 1e6)};
    l.to = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const unsigned long clients = strtoul(argv[6], NULL, 10);
    l.n = l.rate > 0.0 ? MAX_CONNS : clients < MAX_CONNS ? (uint32_t)clients : MAX_CONNS;
    l.max_sent = 1u << 20;
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    l.conns = mem_zalloc_n(l.n, sizeof(*l.conns));
    l.kept = mem_zalloc_n(l.n, sizeof(*l.kept));
    l.closed = mem_zalloc_n(l.n, sizeof(*l.closed));
    l.order = mem_zalloc_n(l.max_sent, sizeof(*l.order));
    l.times = mem_zalloc_n(l.max_sent, sizeof(*l.times));
    char *in = mem_zalloc_n(l.n, BYTES);
    if (l.epoll < 0 || !l.conns || !l.kept || !l.closed || !l.order || !l.times || !in)
        fail("out of memory for %u connections", l.n);
    for (uint32_t i = 0; i < l.n; i++) {
        l.conns[i].fd = -1;
        l.conns[i].in = in + i * BYTES;
        l.closed[l.n_closed++] = &l.conns[i];
    }
    run(&l);
    report(&l);
    return 0;
}

/* proxy.c - bad networks on one machine: a proxy whose links can be slowed, delayed, silenced and
 * cut while they are in use.
 *
 *   chaos_proxy [ADDRESS]
 *
 * Reads commands from stdin, one per line, and answers each with one line; exits at end of input.
 *
 *   link NAME TARGET    listen on a free port of ADDRESS (127.0.0.1) and connect every connection
 *                       to TARGET (HOST:PORT or unix:PATH); answers "NAME PORT"
 *   target NAME TARGET  new connections go to TARGET
 *   delay NAME MS       delay every byte by this much, in both directions
 *   rate NAME BYTES     limit per second and direction of each connection; 0: no limit
 *   loss NAME PERCENT   delay this share of the pieces, and all after them, by 200 ms: the effect
 *                       of a lost packet on a TCP connection
 *   hole NAME 0|1       1: hold all data without notice; 0: deliver it
 *   orphan NAME 0       open connections stay silent forever, new ones work: a machine that lost
 *                       power and is back
 *   cut NAME 0          reset every connection
 *
 * Answers "ok N" with the number of the link's open connections, or "error TEXT". */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINKS 64
#define MAX_CONNS 1024
#define PIECE_BYTES 4096u
#define MAX_QUEUED (256u << 10) /* per direction; then the sender waits */
#define MS_NS 1000000ull
#define RETRANSMIT_NS (200 * MS_NS)

struct piece {
    struct piece *next;
    uint64_t due_ns;
    size_t n, at;
    char bytes[PIECE_BYTES];
};

/* One direction of a connection. */
struct flow {
    struct piece *first, **last;
    size_t queued;
    uint64_t free_ns;  /* the line is busy until then */
    uint64_t after_ns; /* keeps pieces in order */
    bool ended;        /* the sender has closed its side */
    bool closed;       /* the receiver has been told */
};

struct link {
    char name[32], target[200];
    int fd;
    uint64_t delay_ns, rate;
    unsigned loss;
    bool hole;
    unsigned n_conns;
};

struct conn {
    struct link *link;   /* NULL: free */
    int fd[2];           /* the client, the target */
    struct flow flow[2]; /* from the client, from the target */
    bool orphan;
};

static struct link links[MAX_LINKS];
static struct in_addr own_address; /* where links listen */
static struct conn conns[MAX_CONNS];
static unsigned n_links;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "chaos_proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void set_nonblocking(int fd)
{
    int one = 1;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* a unix socket refuses */
}

/* ---- connections ---- */

static void flow_clear(struct flow *f)
{
    struct piece *next;
    for (struct piece *p = f->first; p; p = next) {
        next = p->next;
        free(p);
    }
    *f = (struct flow){.first = NULL};
}

static void close_conn(struct conn *c, bool reset)
{
    const struct linger at_once = {1, 0};
    for (int i = 0; i < 2; i++) {
        if (reset)
            setsockopt(c->fd[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(c->fd[i]);
        flow_clear(&c->flow[i]);
    }
    c->link->n_conns--;
    c->link = NULL;
}

static int connect_target(const char *target)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET};
    const char *port = strrchr(target, ':');
    const struct sockaddr *to = (const struct sockaddr *)&un;
    socklen_t n = sizeof(un);
    if (strncmp(target, "unix:", 5) == 0) {
        snprintf(un.sun_path, sizeof(un.sun_path), "%s", target + 5);
    } else {
        char host[64];
        snprintf(host, sizeof(host), "%.*s", port ? (int)(port - target) : 0, target);
        in.sin_port = htons((uint16_t)atoi(port ? port + 1 : "0"));
        if (inet_pton(AF_INET, host, &in.sin_addr) != 1)
            return -1;
        to = (const struct sockaddr *)&in;
        n = sizeof(in);
    }
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, to, n) < 0) { /* local: succeeds or fails at once */
        close(fd);
        fd = -1;
    }
    return fd;
}

static void accept_one(struct link *l)
{
    const struct linger at_once = {1, 0};
    int client = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    int target = connect_target(l->target);
    for (int i = 0; i < MAX_CONNS && target >= 0; i++)
        if (!conns[i].link) {
            conns[i] = (struct conn){.link = l, .fd = {client, target}};
            set_nonblocking(client);
            set_nonblocking(target);
            l->n_conns++;
            return;
        }
    if (target >= 0)
        close(target);
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)); /* nobody listens */
    close(client);
}

/* When a piece that is read now is due. */
static uint64_t due_of(const struct link *l, struct flow *f, size_t n, uint64_t now)
{
    uint64_t at = f->free_ns > now ? f->free_ns : now;
    if (l->rate > 0)
        at += n * 1000000000ull / l->rate;
    f->free_ns = at;
    at += l->delay_ns;
    if (l->loss > 0 && (unsigned)(random() % 100) < l->loss)
        at += RETRANSMIT_NS;
    if (at < f->after_ns)
        at = f->after_ns;
    f->after_ns = at;
    return at;
}

/* False: the connection is broken. */
static bool read_some(struct conn *c, int from, uint64_t now)
{
    struct flow *f = &c->flow[from];
    struct piece *p = malloc(sizeof(*p));
    if (!p)
        die("memory");
    ssize_t n = read(c->fd[from], p->bytes, sizeof(p->bytes));
    if (n <= 0) {
        free(p);
        f->ended = n == 0;
        return n == 0 || errno == EAGAIN || errno == EINTR;
    }
    p->next = NULL;
    p->n = (size_t)n;
    p->at = 0;
    p->due_ns = due_of(c->link, f, p->n, now);
    if (!f->first)
        f->last = &f->first;
    *f->last = p;
    f->last = &p->next;
    f->queued += p->n;
    return true;
}

/* Writes the bytes that are due; false: the connection is broken. */
static bool write_some(struct conn *c, int from, uint64_t now)
{
    struct flow *f = &c->flow[from];
    int to = c->fd[!from];
    while (f->first && f->first->due_ns <= now) {
        struct piece *p = f->first;
        ssize_t n = write(to, p->bytes + p->at, p->n - p->at);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        p->at += (size_t)n;
        f->queued -= (size_t)n;
        if (p->at < p->n)
            return true;
        f->first = p->next;
        free(p);
    }
    if (!f->first && f->ended && !f->closed) {
        f->closed = true;
        shutdown(to, SHUT_WR);
    }
    return true;
}

static bool is_silent(const struct conn *c)
{
    return c->orphan || c->link->hole;
}

/* The poll events of one side of a connection; shortens the wait to the next piece that is due. */
static short events_of(const struct conn *c, int side, uint64_t now, uint64_t *wait_ns)
{
    const struct flow *in = &c->flow[side], *out = &c->flow[!side];
    short events = 0;
    if (!in->ended && in->queued < MAX_QUEUED)
        events |= POLLIN;
    if (out->first && out->first->due_ns <= now)
        events |= POLLOUT;
    else if (out->first && out->first->due_ns - now < *wait_ns)
        *wait_ns = out->first->due_ns - now;
    return events;
}

static void serve_conn(struct conn *c, const short got[2], uint64_t now)
{
    bool ok = true;
    for (int side = 0; side < 2 && ok; side++)
        if ((got[side] & (POLLIN | POLLHUP | POLLERR)) && !c->flow[side].ended)
            ok = read_some(c, side, now);
    for (int side = 0; side < 2 && ok; side++)
        ok = write_some(c, side, now);
    if (!ok)
        close_conn(c, true);
    else if (c->flow[0].closed && c->flow[1].closed)
        close_conn(c, false);
}

/* ---- commands ---- */

static struct link *find_link(const char *name)
{
    for (unsigned i = 0; i < n_links; i++)
        if (strcmp(links[i].name, name) == 0)
            return &links[i];
    return NULL;
}

static void add_link(const char *name, const char *target)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = own_address};
    socklen_t n = sizeof(at);
    if (n_links == MAX_LINKS) {
        printf("error too many links\n");
        return;
    }
    struct link *l = &links[n_links++];
    snprintf(l->name, sizeof(l->name), "%s", name);
    snprintf(l->target, sizeof(l->target), "%s", target);
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0 || bind(l->fd, (const struct sockaddr *)&at, n) < 0 || listen(l->fd, 128) < 0 ||
        getsockname(l->fd, (struct sockaddr *)&at, &n) < 0)
        die("listen");
    printf("%s %u\n", l->name, ntohs(at.sin_port));
}

static void each_conn(struct link *l, void (*fn)(struct conn *c))
{
    for (int i = 0; i < MAX_CONNS; i++)
        if (conns[i].link == l)
            fn(&conns[i]);
}

static void make_orphan(struct conn *c)
{
    c->orphan = true;
}

static void cut(struct conn *c)
{
    close_conn(c, true);
}

static void obey(char *line)
{
    char verb[16], name[32], arg[200];
    if (sscanf(line, "%15s %31s %199s", verb, name, arg) != 3) {
        printf("error a line is VERB NAME ARGUMENT\n");
        return;
    }
    if (strcmp(verb, "link") == 0) {
        add_link(name, arg);
        return;
    }
    struct link *l = find_link(name);
    unsigned n = l ? l->n_conns : 0;
    uint64_t v = strtoull(arg, NULL, 10);
    if (!l)
        printf("error no link %s\n", name);
    else if (strcmp(verb, "target") == 0)
        snprintf(l->target, sizeof(l->target), "%s", arg);
    else if (strcmp(verb, "delay") == 0)
        l->delay_ns = v * MS_NS;
    else if (strcmp(verb, "rate") == 0)
        l->rate = v;
    else if (strcmp(verb, "loss") == 0)
        l->loss = (unsigned)v;
    else if (strcmp(verb, "hole") == 0)
        l->hole = v != 0;
    else if (strcmp(verb, "orphan") == 0)
        each_conn(l, make_orphan);
    else if (strcmp(verb, "cut") == 0)
        each_conn(l, cut);
    else {
        printf("error unknown verb %s\n", verb);
        return;
    }
    if (l)
        printf("ok %u\n", n);
}

/* Reads whole lines from stdin; false: end of input. */
static bool read_commands(void)
{
    static char in[8192];
    static size_t n;
    ssize_t got = read(0, in + n, sizeof(in) - 1 - n);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    n += (size_t)got;
    in[n] = '\0';
    char *at = in;
    for (char *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        obey(at);
    }
    fflush(stdout);
    n -= (size_t)(at - in);
    memmove(in, at, n + 1);
    if (n == sizeof(in) - 1)
        die("a line is too long");
    return true;
}

int main(int argc, char **argv)
{
    static struct pollfd fds[1 + MAX_LINKS + 2 * MAX_CONNS];
    static struct conn *owner[2 * MAX_CONNS];
    signal(SIGPIPE, SIG_IGN);
    if (inet_pton(AF_INET, argc > 1 ? argv[1] : "127.0.0.1", &own_address) != 1) {
        fprintf(stderr, "usage: chaos_proxy [ADDRESS]\n");
        return 2;
    }
    for (;;) {
        uint64_t now = now_ns(), wait_ns = 1000 * MS_NS;
        size_t n = 0, n_owner = 0, base;
        fds[n++] = (struct pollfd){0, POLLIN, 0};
        for (unsigned i = 0; i < n_links; i++) /* a hole leaves connections queued */
            fds[n++] = (struct pollfd){links[i].fd, links[i].hole ? 0 : POLLIN, 0};
        base = n;
        for (int i = 0; i < MAX_CONNS; i++) {
            struct conn *c = &conns[i];
            if (!c->link || is_silent(c))
                continue;
            for (int side = 0; side < 2; side++) {
                short events = events_of(c, side, now, &wait_ns);
                /* poll reports a hangup even if no events are requested, so the descriptor is
                 * left out then */
                fds[n++] = (struct pollfd){events ? c->fd[side] : -1, events, 0};
                owner[n_owner++] = c;
            }
        }
        const struct timespec wait = {(time_t)(wait_ns / 1000000000ull),
                                      (long)(wait_ns % 1000000000ull)};
        if (ppoll(fds, n, &wait, NULL) < 0 && errno != EINTR)
            die("poll");
        now = now_ns();
        for (size_t i = 0; i + 1 < n_owner; i += 2) {
            const short got[2] = {fds[base + i].revents, fds[base + i + 1].revents};
            serve_conn(owner[i], got, now);
        }
        for (unsigned i = 0; i < n_links && 1 + i < base; i++)
            if (fds[1 + i].revents & POLLIN)
                accept_one(&links[i]);
        if (fds[0].revents && !read_commands())
            return 0;
    }
}

/* plugin_host.c - see plugin_host.h. */
#include "site/deeds/plugin_host.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "shoal/shoal_plugin.h"
#include "site/deeds/plugin_frame.h"

struct host {
    int fd;
    const char *path;
    const struct shoal_plugin *table; /* NULL: not loaded yet */
    void *state;
    bool opened;
};

struct run {
    struct shoal_plugin_call call; /* first */
    uint64_t deadline_ns;
    char why[PLUGIN_FRAME_WHY_BYTES];
    struct buf answer;
};

/* ---- what a plug-in calls ---- */

static uint32_t left_ms(const struct shoal_plugin_call *c)
{
    const struct run *r = (const struct run *)(const void *)c;
    uint64_t now = clock_ns();
    return r->deadline_ns > now ? (uint32_t)((r->deadline_ns - now + 999999) / 1000000) : 0;
}

static int answer(struct shoal_plugin_call *c, const char *text, size_t n)
{
    struct run *r = (struct run *)(void *)c;
    buf_put(&r->answer, text, n);
    return r->answer.rc;
}

static void fail(struct shoal_plugin_call *c, const char *why)
{
    struct run *r = (struct run *)(void *)c;
    snprintf(r->why, sizeof(r->why), "%.200s", why ? why : "");
}

/* ---- loading ---- */

static int load(struct host *h, struct err *e)
{
    shoal_plugin_fn fn;
    void *object = dlopen(h->path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = object ? dlsym(object, SHOAL_PLUGIN_SYMBOL) : NULL;
    if (!symbol) {
        const char *why = dlerror();
        return err_set(e, SHOAL_ENOTFOUND, "it is not a plug-in: %.150s",
                       why ? why : "no function " SHOAL_PLUGIN_SYMBOL);
    }
    memcpy(&fn, &symbol, sizeof(fn)); /* a pointer to data becomes one to a function */
    const struct shoal_plugin *t = fn();
    if (!t || t->version != SHOAL_PLUGIN_VERSION || t->size < sizeof(*t) || !t->run)
        return err_set(e, SHOAL_EUNSUPPORTED, "it was built for version %u, this server has %u",
                       t ? t->version : 0, SHOAL_PLUGIN_VERSION);
    h->table = t;
    return 0;
}

static int open_plugin(struct host *h, struct err *e)
{
    int rc = h->table ? 0 : load(h, e);
    if (rc < 0 || h->opened)
        return rc;
    if (h->table->open && h->table->open(&h->state) != 0)
        return err_set(e, SHOAL_EIO, "it could not be opened");
    h->opened = true;
    return 0;
}

/* ---- questions and answers ---- */

static bool read_all(int fd, void *to, size_t n)
{
    for (char *at = to; n > 0;) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *from, size_t n)
{
    for (const char *at = from; n > 0;) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        n -= (size_t)put;
    }
    return true;
}

static int run_plugin(struct host *h, struct run *r)
{
    struct err e = {0};
    int rc = open_plugin(h, &e);
    if (rc < 0) {
        fail(&r->call, e.msg);
        return rc;
    }
    rc = h->table->run(h->state, &r->call) == 0 ? 0 : SHOAL_EIO;
    return r->answer.rc < 0 ? SHOAL_ELIMIT : rc;
}

/* False: the server is gone. */
static bool serve_one(struct host *h)
{
    struct plugin_frame_question q;
    uint8_t head[PLUGIN_FRAME_HEAD_BYTES];
    if (!read_all(h->fd, &q, sizeof(q)))
        return false;
    char *payload = mem_zalloc((size_t)q.payload_bytes + 1);
    if (!payload || !read_all(h->fd, payload, q.payload_bytes)) {
        mem_free(payload);
        return false;
    }
    struct run r = {.call = {.size = sizeof(r.call),
                             .payload = payload,
                             .payload_bytes = q.payload_bytes,
                             .key = q.key,
                             .left_ms = left_ms,
                             .answer = answer,
                             .fail = fail},
                    .deadline_ns = clock_ns() + q.timeout_ms * 1000000ull};
    buf_init(&r.answer, q.max_answer_bytes);
    struct plugin_frame_answer a = {.code = run_plugin(h, &r)};
    a.why_bytes = a.code ? (uint32_t)strlen(r.why) : 0;
    a.text_bytes = a.code ? 0 : (uint32_t)r.answer.len;
    plugin_frame_write(head, &a);
    bool ok = write_all(h->fd, head, sizeof(head)) && write_all(h->fd, r.why, a.why_bytes) &&
              write_all(h->fd, buf_str(&r.answer), a.text_bytes);
    buf_fini(&r.answer);
    mem_free(payload);
    return ok;
}

/* A killed server cannot end this process, and a looping plug-in would never notice.
 */
static void *watch_server(void *arg)
{
    struct pollfd p = {.fd = *(const int *)arg, .events = POLLRDHUP};
    while (poll(&p, 1, -1) < 0 && errno == EINTR)
        continue;
    usleep(500000); /* for `close` of the plug-in */
    (void)kill(getpid(), SIGKILL);
    return NULL;
}

static void confine(size_t memory_bytes)
{
    const struct rlimit none = {0, 0}, memory = {memory_bytes, memory_bytes};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)setrlimit(RLIMIT_CORE, &none);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they reserve terabytes */
    if (memory_bytes > 0)
        (void)setrlimit(RLIMIT_AS, &memory);
#else
    (void)memory;
#endif
}

int plugin_host_main(int fd, const char *path, size_t memory_bytes)
{
    struct host h = {.fd = fd, .path = path};
    pthread_t watcher;
    struct err e = {0};
    if (thread_create(&watcher, "server", watch_server, &h.fd, &e) < 0)
        return 1;
    confine(memory_bytes);
    while (serve_one(&h))
        continue;
    if (h.opened && h.table->close)
        h.table->close(h.state);
    return 0;
}

/* stream.c - see stream.h. */
#include "cmd/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cmd/term.h"

#define MAX_WAITING_BYTES ((size_t)256 << 20)
/* A pipe that polls as writable takes this much without blocking (PIPE_BUF). */
#define WRITE_BYTES 4096u

int stream_init(struct stream *s, struct err *e)
{
    memset(s, 0, sizeof(*s));
    s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->event_fd < 0)
        return err_set(e, SHOAL_EIO, "eventfd: %s", strerror(errno));
    pthread_mutex_init(&s->lock, NULL);
    buf_init(&s->waiting, MAX_WAITING_BYTES);
    buf_init(&s->writing, MAX_WAITING_BYTES);
    return 0;
}

void stream_fini(struct stream *s)
{
    if (s->event_fd <= 0)
        return;
    pthread_mutex_destroy(&s->lock);
    buf_fini(&s->waiting);
    buf_fini(&s->writing);
    close(s->event_fd);
    s->event_fd = -1;
}

static void wake(struct stream *s)
{
    uint64_t one = 1;
    if (write(s->event_fd, &one, sizeof(one)) < 0)
        return; /* the counter is full: a wake-up is pending already */
}

void stream_put(struct stream *s, const void *p, size_t n)
{
    if (n == 0)
        return;
    pthread_mutex_lock(&s->lock);
    buf_put(&s->waiting, p, n);
    pthread_mutex_unlock(&s->lock);
    wake(s);
}

void stream_end(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    pthread_mutex_unlock(&s->lock);
    wake(s);
}

/* Appends waiting bytes to those being written; true if the stream has ended. */
static bool collect(struct stream *s, int *rc)
{
    uint64_t count;
    if (read(s->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
        *rc = SHOAL_EIO;
    pthread_mutex_lock(&s->lock);
    if (s->waiting.rc < 0)
        *rc = s->waiting.rc;
    buf_put(&s->writing, buf_str(&s->waiting), s->waiting.len);
    buf_clear(&s->waiting);
    bool ended = s->ended;
    pthread_mutex_unlock(&s->lock);
    if (s->writing.rc < 0)
        *rc = s->writing.rc;
    return ended;
}

static int write_some(struct stream *s, size_t *done, int fd, struct err *e)
{
    size_t left = s->writing.len - *done;
    ssize_t n = write(fd, s->writing.data + *done, left < WRITE_BYTES ? left : WRITE_BYTES);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return err_set(e, SHOAL_EIO, "cannot write: %s", strerror(errno));
    if (n > 0) {
        *done += (size_t)n;
        s->last = s->writing.data[*done - 1];
    }
    if (*done == s->writing.len) {
        buf_clear(&s->writing);
        *done = 0;
    }
    return 0;
}

int stream_pump(struct stream *s, int fd, int interrupt_fd, bool (*on_interrupt)(void *ctx),
                void *ctx, struct err *e)
{
    size_t done = 0;
    for (;;) {
        int rc = 0;
        bool ended = collect(s, &rc);
        if (rc < 0)
            return err_set(e, rc, "output: %s", err_text(rc));
        bool pending = s->writing.len > done;
        if (ended && !pending)
            return 0;
        struct pollfd p[] = {{.fd = s->event_fd, .events = POLLIN},
                             {.fd = interrupt_fd, .events = POLLIN}, /* -1 is ignored */
                             {.fd = pending ? fd : -1, .events = POLLOUT}};
        if (poll(p, 3, -1) < 0 && errno != EINTR)
            return err_set(e, SHOAL_EIO, "poll: %s", strerror(errno));
        if (p[1].revents && term_interrupted(interrupt_fd) && on_interrupt(ctx))
            return 0;
        if (p[2].revents && (rc = write_some(s, &done, fd, e)) < 0)
            return rc;
    }
}

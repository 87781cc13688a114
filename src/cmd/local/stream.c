/* stream.c - see stream.h. */
#include "cmd/local/stream.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/executor_queue.h"
#include "cmd/cli/term.h"

#define MAX_WAITING_BYTES ((size_t)256 << 20)
/* A pipe that polls as writable takes this much without blocking (PIPE_BUF). */
#define WRITE_BYTES 4096u

void stream_init(struct stream *s)
{
    *s = (struct stream){.last = 0};
    buf_init(&s->waiting, MAX_WAITING_BYTES);
}

void stream_fini(struct stream *s)
{
    buf_fini(&s->waiting);
}

void stream_put(struct stream *s, const void *p, size_t n)
{
    buf_put(&s->waiting, p, n);
}

static int write_some(struct stream *s, int fd, struct err *e)
{
    size_t left = s->waiting.len - s->n_written;
    ssize_t n = write(fd, s->waiting.data + s->n_written, left < WRITE_BYTES ? left : WRITE_BYTES);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return err_set(e, SHOAL_EIO, "cannot write: %s", strerror(errno));
    if (n > 0) {
        s->n_written += (size_t)n;
        s->last = s->waiting.data[s->n_written - 1];
    }
    if (s->n_written == s->waiting.len) {
        buf_clear(&s->waiting);
        s->n_written = 0;
    }
    return 0;
}

int stream_pump(struct stream *s, struct executor_queue *q, const bool *closed, int fd,
                int interrupt_fd, bool (*on_interrupt)(void *ctx), void *ctx, struct err *e)
{
    for (;;) {
        int rc;
        (void)executor_queue_run(q);
        if (s->waiting.rc < 0)
            return err_set(e, s->waiting.rc, "output: %s", err_text(s->waiting.rc));
        bool pending = s->waiting.len > s->n_written;
        if (*closed && !pending)
            return 0;
        struct pollfd p[] = {{.fd = q->fd, .events = POLLIN},
                             {.fd = interrupt_fd, .events = POLLIN}, /* -1 is ignored */
                             {.fd = pending ? fd : -1, .events = POLLOUT}};
        if (poll(p, 3, executor_queue_wait_ms(q)) < 0 && errno != EINTR)
            return err_set(e, SHOAL_EIO, "poll: %s", strerror(errno));
        if (p[1].revents && term_interrupted(interrupt_fd) && on_interrupt(ctx))
            return 0;
        if (p[2].revents && (rc = write_some(s, fd, e)) < 0)
            return rc;
    }
}

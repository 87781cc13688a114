/* lines.c - see lines.h. */
#include "base/file/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE_BYTES ((size_t)16 << 20)

void lines_init(struct lines *l, int fd)
{
    l->fd = fd;
    l->name = NULL;
    l->used = 0;
    l->ended = false;
    buf_init(&l->in, MAX_LINE_BYTES);
}

void lines_fini(struct lines *l)
{
    buf_fini(&l->in);
}

static int give(struct lines *l, size_t n, size_t used, char **line, size_t *n_line)
{
    if (n > 0 && l->in.data[n - 1] == '\r')
        n--;
    l->in.data[n] = '\0';
    l->used = used;
    *line = l->in.data;
    *n_line = n;
    return LINES_LINE;
}

static void drop_used(struct lines *l)
{
    if (l->used == 0)
        return;
    memmove(l->in.data, l->in.data + l->used, l->in.len - l->used);
    l->in.len -= l->used;
    l->in.data[l->in.len] = '\0';
    l->used = 0;
}

/* Reads the available bytes, at least one, or waits for them. Negative: see errno. */
static ssize_t read_block(struct lines *l)
{
    char block[65536];
    ssize_t got = read(l->fd, block, sizeof(block));
    if (got > 0)
        buf_put(&l->in, block, (size_t)got);
    l->ended = got == 0;
    return got;
}

bool lines_ready(struct lines *l)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    drop_used(l);
    for (;;) {
        if (l->ended || l->in.rc < 0 || (l->in.len && memchr(l->in.data, '\n', l->in.len)))
            return true;
        if (poll(&p, 1, 0) <= 0)
            return false;
        if (read_block(l) < 0)
            return errno != EAGAIN && errno != EINTR; /* lines_next reports it */
    }
}

int lines_next(struct lines *l, int interrupt_fd, char **line, size_t *n, struct err *e)
{
    drop_used(l);
    for (;;) {
        char *end = l->in.len ? memchr(l->in.data, '\n', l->in.len) : NULL;
        if (end) {
            size_t at = (size_t)(end - l->in.data);
            return give(l, at, at + 1, line, n);
        }
        if (l->in.rc < 0)
            return err_set(e, l->in.rc, "a line is longer than %zu bytes", MAX_LINE_BYTES);
        if (l->ended)
            return l->in.len ? give(l, l->in.len, l->in.len, line, n) : LINES_END;
        struct pollfd p[] = {{.fd = l->fd, .events = POLLIN},
                             {.fd = interrupt_fd, .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return err_set(e, SHOAL_EIO, "cannot wait for a line: %s", strerror(errno));
        if (p[1].revents)
            return LINES_INTERRUPT;
        if (!p[0].revents)
            continue;
        if (read_block(l) < 0 && errno != EINTR && errno != EAGAIN)
            return err_set(e, SHOAL_EIO, "cannot read %s: %s", l->name ? l->name : "a line",
                           strerror(errno));
    }
}

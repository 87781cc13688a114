/* peer_book.c - see peer_book.h. */
#include "cluster/peer_book.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "base/file/file_replace.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread/thread.h"
#include "cluster/control/desired.h"

#define FIRST_LINE "shoal peers 1\n"

struct peer_book {
    char *path;
    pthread_t thread;
    bool threaded;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    struct buf next;
    bool due, stop;
};

/* ---- text ---- */

void peer_book_begin(struct buf *out)
{
    buf_puts(out, FIRST_LINE);
}

void peer_book_put(struct buf *out, const char *address, const char *name)
{
    buf_printf(out, "%s %s\n", address, name);
}

static bool is_address(const char *p)
{
    for (; *p; p++)
        if (*p <= ' ' || *p > '~')
            return false;
    return true;
}

/* One line of n bytes, with or without its end; false: it is not a row. */
static bool read_row(const char *line, size_t n, peer_book_fn fn, void *ctx)
{
    char address[PEER_BOOK_MAX_ADDRESS], name[PEER_BOOK_MAX_NAME];
    const char *space = memchr(line, ' ', n);
    size_t first = space ? (size_t)(space - line) : 0, second = space ? n - first - 1 : 0;
    if (first == 0 || first >= sizeof(address) || second == 0 || second >= sizeof(name))
        return false;
    memcpy(address, line, first);
    address[first] = '\0';
    memcpy(name, space + 1, second);
    name[second] = '\0';
    if (strlen(address) != first || strlen(name) != second || !is_address(address) ||
        !desired_name_ok(name))
        return false;
    if (fn)
        fn(ctx, address, name);
    return true;
}

static bool read_rows(const char *text, size_t n, peer_book_fn fn, void *ctx)
{
    uint32_t rows = 0;
    while (n > 0) {
        const char *end = memchr(text, '\n', n);
        if (!end || rows++ == PEER_BOOK_MAX_ROWS || !read_row(text, (size_t)(end - text), fn, ctx))
            return false;
        n -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return true;
}

int peer_book_parse(const char *text, size_t n, peer_book_fn fn, void *ctx, struct err *e)
{
    const size_t head = strlen(FIRST_LINE);
    if (n < head || n > PEER_BOOK_MAX_BYTES || memcmp(text, FIRST_LINE, head) != 0 ||
        !read_rows(text + head, n - head, NULL, NULL))
        return err_set(e, SHOAL_EFORMAT, "not a list of nodes, or damaged");
    (void)!read_rows(text + head, n - head, fn, ctx);
    return 0;
}

/* ---- the file ---- */

void peer_book_read(struct peer_book *b, peer_book_fn fn, void *ctx)
{
    struct err e = {0};
    struct buf text;
    if (access(b->path, F_OK) != 0)
        return;
    buf_init(&text, PEER_BOOK_MAX_BYTES);
    int rc = file_read(b->path, &text, &e);
    if (rc == 0)
        rc = peer_book_parse(buf_str(&text), text.len, fn, ctx, &e);
    if (rc < 0)
        log_warn("cluster", "%s is not used: %s", b->path, e.msg);
    buf_fini(&text);
}

static void *run(void *arg)
{
    struct peer_book *b = arg;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (!b->due && !b->stop)
            pthread_cond_wait(&b->wake, &b->lock);
        if (!b->due)
            break;
        struct buf text = b->next;
        struct err e = {0};
        buf_init(&b->next, PEER_BOOK_MAX_BYTES);
        b->due = false;
        pthread_mutex_unlock(&b->lock);
        if (file_replace(b->path, text.data, text.len, &e) < 0)
            log_warn("cluster", "the addresses of the nodes are not kept: %s", e.msg);
        buf_fini(&text);
        pthread_mutex_lock(&b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

void peer_book_save(struct peer_book *b, const struct buf *text)
{
    pthread_mutex_lock(&b->lock);
    buf_clear(&b->next);
    buf_put(&b->next, text->data, text->len);
    b->due = text->rc == 0 && b->next.rc == 0; /* without memory, the old one stays */
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
}

int peer_book_open(struct peer_book **out, const char *path, struct err *e)
{
    struct peer_book *b = mem_zalloc(sizeof(*b));
    *out = NULL;
    if (!b)
        return err_set(e, SHOAL_ENOMEM, "addresses of nodes");
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->wake, NULL);
    buf_init(&b->next, PEER_BOOK_MAX_BYTES);
    int rc = (b->path = mem_strdup(path)) ? thread_create(&b->thread, "peers", run, b, e)
                                          : err_set(e, SHOAL_ENOMEM, "addresses of nodes");
    b->threaded = rc == 0;
    if (rc < 0) {
        peer_book_close(b);
        return rc;
    }
    *out = b;
    return 0;
}

void peer_book_close(struct peer_book *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_signal(&b->wake);
    pthread_mutex_unlock(&b->lock);
    if (b->threaded)
        pthread_join(b->thread, NULL);
    buf_fini(&b->next);
    pthread_cond_destroy(&b->wake);
    pthread_mutex_destroy(&b->lock);
    mem_free(b->path);
    mem_free(b);
}

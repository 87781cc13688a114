/* fuzz_http_client.c - bytes of a hostile HTTP/2 server. The first byte says how they are split,
 * the second what the caller does: cancel or pause a call, destroy the client in a callback,
 * start another call when one ends. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/http_client.h"
#include "net/listen.h"
#include "net/loop.h"

#define N_CALLS 3
#define MAX_HEADER_BYTES 600u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct site {
    struct http_client *client;
    bool destroy, repeat;
};

struct asked {
    struct http_call call;
    struct site *site;
    bool started, over, cancel, pause;
    int n_heads;
};

static void ask(struct asked *a, bool end)
{
    a->over = false;
    a->n_heads = 0;
    a->started =
        http_call_start(a->site->client, &a->call, "POST", "/", NULL, 0, "body", 4, end) == 0;
}

/* The caller's reaction when a call ends. */
static void go_on(struct asked *a)
{
    struct site *s = a->site;
    a->over = true;
    if (s->destroy && s->client) {
        struct http_client *c = s->client;
        s->client = NULL;
        http_client_destroy(c);
    } else if (s->repeat && s->client) {
        s->repeat = false;
        ask(a, true);
    }
}

static void on_head(struct http_call *k, int status, const struct http_header *headers, size_t n)
{
    struct asked *a = LOOP_OF(k, struct asked, call);
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += strlen(headers[i].name) + strlen(headers[i].value);
    if (a->over || a->n_heads++ > 0 || status < 200 || status > 999 || sum > MAX_HEADER_BYTES)
        abort();
}

static void on_data(struct http_call *k, const char *p, size_t n)
{
    struct asked *a = LOOP_OF(k, struct asked, call);
    if (a->over || a->n_heads != 1 || n == 0 || !p)
        abort();
    if (a->pause)
        http_call_pause(k);
    if (a->cancel) {
        a->over = true;
        http_call_cancel(k);
    }
}

static void on_ended(struct http_call *k, const struct http_header *trailers, size_t n)
{
    struct asked *a = LOOP_OF(k, struct asked, call);
    if (a->over || a->n_heads != 1 || (n > 0 && !trailers[n - 1].value))
        abort();
    go_on(a);
}

static void on_failed(struct http_call *k, int code, const char *message)
{
    struct asked *a = LOOP_OF(k, struct asked, call);
    if (a->over || code >= 0 || message[0] == '\0')
        abort();
    go_on(a);
}

static int listen_at(char *address, size_t cap)
{
    static const char *folder;
    static char made[] = "/tmp/fuzz_http_client.XXXXXX";
    int fd = -1;
    if (!folder && !(folder = mkdtemp(made)))
        return -1;
    snprintf(address, cap, "unix:%s/s", folder);
    unlink(address + 5);
    return listen_open(&fd, address, LISTEN_ALONE, NULL) < 0 ? -1 : fd;
}

static void talk(struct loop *l, int fd, const uint8_t *data, size_t size, size_t step)
{
    char block[4096];
    int peer = -1;
    for (int i = 0; i < 100 && peer < 0; i++) {
        loop_turn(l, 0);
        peer = accept4(fd, NULL, NULL, SOCK_NONBLOCK);
    }
    for (size_t at = 0; peer >= 0 && at < size; at += step) {
        size_t n = size - at < step ? size - at : step;
        if (send(peer, data + at, n, MSG_NOSIGNAL) < 0)
            break;
        loop_turn(l, 0);
        while (recv(peer, block, sizeof(block), 0) > 0)
            ;
        loop_turn(l, 0);
    }
    if (peer >= 0)
        close(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_call_ops ops = {
        .head = on_head, .data = on_data, .ended = on_ended, .failed = on_failed};
    struct asked a[N_CALLS] = {{.over = false}};
    struct site site = {.client = NULL};
    char address[100];
    struct loop *l = NULL;
    if (size < 2 || size > 65536)
        return 0;
    int fd = listen_at(address, sizeof(address));
    struct http_client_opts o = {.address = address, .max_header_bytes = MAX_HEADER_BYTES};
    if (fd >= 0 && loop_create(&l, NULL) == 0 &&
        http_client_create(&site.client, l, &o, NULL) == 0) {
        size_t step = data[0] & 63 ? data[0] & 63u : size;
        site.destroy = data[1] & 64;
        site.repeat = data[1] & 128;
        for (int i = 0; i < N_CALLS; i++) {
            a[i].call.ops = &ops;
            a[i].site = &site;
            a[i].cancel = data[1] >> i & 1;
            a[i].pause = data[1] >> (i + 3) & 1;
            ask(&a[i], i != 1);
        }
        talk(l, fd, data + 2, size - 2, step);
        for (int i = 0; i < N_CALLS; i++)
            if (a[i].started && !a[i].over)
                http_call_resume(&a[i].call);
        loop_turn(l, 0);
        loop_turn(l, 0);
    }
    site.repeat = false;
    http_client_destroy(site.client);
    site.client = NULL;
    if (l)
        loop_flush(l);
    for (int i = 0; i < N_CALLS; i++)
        if (a[i].started && !a[i].over)
            abort(); /* every call completes or fails */
    loop_destroy(l);
    if (fd >= 0)
        close(fd);
    return 0;
}

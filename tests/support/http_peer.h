/* http_peer.h - a small HTTP server in a thread, for tests of what calls other servers: it answers
 * with given statuses, one after the other (the last one for all that follow), or with files, and
 * keeps the requests.
 *
 * Include it after cmocka.h.
 *
 * Thread:    http_peer_wait: the test's.  Everything else before the first call, or after the end.
 */
#ifndef SHOAL_TESTS_HTTP_PEER_H
#define SHOAL_TESTS_HTTP_PEER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_PEER_REQUESTS 64u

struct http_peer_request {
    char line[256]; /* "POST /path HTTP/1.1" */
    char head[4096], body[8192];
};

struct http_peer_file {
    const char *path; /* with its query */
    const char *head; /* further lines of the answer's head, each with \r\n; "": none */
    const void *bytes;
    size_t n;
    size_t cut; /* the first answer breaks off after so many bytes; 0: none does */
};

struct http_peer {
    const struct http_peer_file *files; /* NULL: statuses */
    uint32_t n_files;
    bool cut[HTTP_PEER_REQUESTS]; /* by file: it has broken off */
    char server[64];              /* "http://127.0.0.1:PORT" */
    int statuses[HTTP_PEER_REQUESTS];
    uint32_t n_statuses;
    const char *answer; /* NULL: {} */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t n; /* under the lock, as the list */
    struct http_peer_request list[HTTP_PEER_REQUESTS];
    int fd;
    pthread_t thread;
};

/* The value of a header; "": there is none. */
static inline const char *http_peer_header(const struct http_peer_request *r, const char *name)
{
    static char value[1024];
    const size_t n = strlen(name);
    value[0] = '\0';
    for (const char *p = r->head; *p; p++)
        if ((p == r->head || p[-1] == '\n') && strncasecmp(p, name, n) == 0 && p[n] == ':') {
            p += n + 1;
            while (*p == ' ')
                p++;
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(p, "\r\n"), p);
            break;
        }
    return value;
}

/* One request of a connection; false: it has ended. */
static inline bool http_peer_read(int fd, struct http_peer_request *r)
{
    char bytes[sizeof(r->head) + sizeof(r->body)];
    size_t n = 0;
    char *body = NULL;
    memset(r, 0, sizeof(*r));
    while (!body) {
        ssize_t got = read(fd, bytes + n, sizeof(bytes) - 1 - n);
        if (got <= 0)
            return false;
        n += (size_t)got;
        bytes[n] = '\0';
        body = strstr(bytes, "\r\n\r\n");
    }
    *body = '\0';
    body += 4;
    const size_t line = strcspn(bytes, "\r\n");
    snprintf(r->line, sizeof(r->line), "%.*s", (int)line, bytes);
    snprintf(r->head, sizeof(r->head), "%s", bytes[line] ? bytes + line + 2 : "");
    const size_t want = strtoul(http_peer_header(r, "Content-Length"), NULL, 10);
    size_t have = n - (size_t)(body - bytes);
    while (have < want) {
        ssize_t got = read(fd, bytes + n, sizeof(bytes) - 1 - n);
        if (got <= 0)
            return false;
        n += (size_t)got;
        have += (size_t)got;
    }
    snprintf(r->body, sizeof(r->body), "%.*s", (int)want, body);
    return true;
}

static inline void http_peer_write(int fd, const void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t sent = send(fd, (const char *)p + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0) /* who called may be gone */
            return;
        at += (size_t)sent;
    }
}

/* With the lock. */
static inline void http_peer_give(struct http_peer *p, int fd, const struct http_peer_request *r)
{
    char head[1024], path[256] = "", method[16] = "";
    unsigned long long from = 0;
    sscanf(r->line, "%15s %255s", method, path);
    const char *range = http_peer_header(r, "Range");
    const bool part = sscanf(range, "bytes=%llu-", &from) == 1;
    for (uint32_t i = 0; i < p->n_files; i++) {
        const struct http_peer_file *f = &p->files[i];
        if (strcmp(f->path, path) != 0)
            continue;
        const bool beyond = part && from >= f->n;
        const size_t n = beyond ? 0 : f->n - (size_t)from;
        int k = snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s",
                         beyond ? 416
                         : part ? 206
                                : 200,
                         n, f->head);
        if (part && !beyond)
            k += snprintf(head + k, sizeof(head) - (size_t)k,
                          "Content-Range: bytes %llu-%zu/%zu\r\n", from, f->n - 1, f->n);
        k += snprintf(head + k, sizeof(head) - (size_t)k, "Connection: close\r\n\r\n");
        http_peer_write(fd, head, (size_t)k);
        const bool cuts = f->cut > 0 && !p->cut[i] && n > f->cut && strcmp(method, "GET") == 0 &&
                          strcmp(range, "bytes=0-0") != 0;
        p->cut[i] |= cuts;
        if (strcmp(method, "HEAD") != 0)
            http_peer_write(fd, (const char *)f->bytes + from, cuts ? f->cut : n);
        return;
    }
    static const char none[] = "HTTP/1.1 404 X\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    http_peer_write(fd, none, sizeof(none) - 1);
}

static inline void *http_peer_run(void *arg)
{
    struct http_peer *p = arg;
    for (;;) {
        struct http_peer_request r;
        char out[8192];
        int fd = accept(p->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        if (http_peer_read(fd, &r)) {
            pthread_mutex_lock(&p->lock);
            const uint32_t i = p->n < p->n_statuses ? p->n : p->n_statuses - 1;
            const int status = p->n_statuses ? p->statuses[i] : 200;
            if (p->n < HTTP_PEER_REQUESTS)
                p->list[p->n++] = r;
            const char *body = p->answer ? p->answer : "{}";
            int n = snprintf(out, sizeof(out),
                             "HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                             status, strlen(body), body);
            if (p->files)
                http_peer_give(p, fd, &r);
            else
                http_peer_write(fd, out, (size_t)n);
            pthread_cond_broadcast(&p->changed);
            pthread_mutex_unlock(&p->lock);
        }
        close(fd);
    }
}

static inline void http_peer_begin(struct http_peer *p)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(at);
    memset(p, 0, sizeof(*p));
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(p->fd >= 0);
    assert_int_equal(bind(p->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(p->fd, 8), 0);
    assert_int_equal(getsockname(p->fd, (struct sockaddr *)&at, &n), 0);
    snprintf(p->server, sizeof(p->server), "http://127.0.0.1:%u", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&p->thread, NULL, http_peer_run, p), 0);
}

static inline void http_peer_status(struct http_peer *p, int status)
{
    pthread_mutex_lock(&p->lock);
    assert_true(p->n_statuses < HTTP_PEER_REQUESTS);
    p->statuses[p->n_statuses++] = status;
    pthread_mutex_unlock(&p->lock);
}

/* Until there were n requests. */
static inline void http_peer_wait(struct http_peer *p, uint32_t n)
{
    pthread_mutex_lock(&p->lock);
    while (p->n < n)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static inline void http_peer_end(struct http_peer *p)
{
    shutdown(p->fd, SHUT_RDWR);
    pthread_join(p->thread, NULL);
    close(p->fd);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
}

#endif

/* test_model_fetch.c - models from URLs: a web server in this process that behaves as told, also
 * badly.
 * Other nodes as sources: tests/integration/cluster_fetch.js. */
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/thread/executor_queue.h"
#include "base/file/file_read.h"
#include "base/mem.h"
#include "cluster/store/byte_rate.h"
#include "cluster/store/fetch_url.h"
#include "cluster/store/model_fetch.h"
#include "depot/store/model_intake.h"
#include "depot/store/model_manifest.h"
#include "depot/store/model_put.h"
#include "depot/store/model_store.h"

#define BIG 300000u

static char dir[] = "/tmp/test_model_fetch.XXXXXX";
static const _Atomic bool go_on = false;
static uint8_t content[BIG];
static uint8_t content_sum[SHA256_BYTES];
static unsigned n_stores;

static const char *at(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned turn;
    char *out = paths[turn++ & 3];
    snprintf(out, PATH_MAX, "%s/%s", dir, name);
    return out;
}

/* ---- the web server ---- */

static struct {
    int fd, port;
    pthread_t thread;
    _Atomic bool stop;
    char root[PATH_MAX]; /* /files/... come from here */
    /* its behaviour: /m is `content` */
    _Atomic size_t break_after; /* of a body, once; 0: never */
    _Atomic bool no_ranges, corrupt, wrong_range, hang;
    _Atomic uint32_t n_requests, n_ranges;
    _Atomic uint64_t n_bytes, n_sent, last_from;
} web;

static void send_all(int fd, const void *p, size_t n)
{
    web.n_bytes += n; /* before they are sent: a client that has them all finds them counted */
    for (const char *c = p; n > 0;) {
        ssize_t k = send(fd, c, n, MSG_NOSIGNAL);
        if (k <= 0)
            return;
        c += k;
        n -= (size_t)k;
        web.n_sent += (uint64_t)k;
    }
}

static void say(int fd, const char *head)
{
    (void)!send(fd, head, strlen(head), MSG_NOSIGNAL);
}

static void send_body(int fd, const uint8_t *p, size_t n, size_t from, size_t to, bool ranged)
{
    char head[256];
    size_t count = to + 1 - from, limit = web.break_after ? web.break_after : count;
    if (ranged)
        snprintf(head, sizeof(head),
                 "HTTP/1.1 206 Partial\r\nContent-Range: bytes %zu-%zu/%zu\r\nContent-Length: "
                 "%zu\r\nConnection: close\r\n\r\n",
                 from + web.wrong_range, to, n, count);
    else
        snprintf(head, sizeof(head),
                 "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", count);
    say(fd, head);
    if (count > 1) /* not for the request that asks for the size */
        web.break_after = 0;
    send_all(fd, p + from, limit < count ? limit : count);
    while (web.hang && !web.stop && count > 1)
        usleep(10000);
}

static void answer_file(int fd, const char *path, size_t from, size_t to, bool ranged)
{
    struct buf b;
    char full[2 * PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", web.root, path);
    buf_init(&b, 1 << 20);
    if (file_read(full, &b, NULL) < 0)
        say(fd, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    else
        send_body(fd, (const uint8_t *)buf_str(&b), b.len, from,
                  ranged && to < b.len ? to : b.len - 1, ranged);
    buf_fini(&b);
}

/* "%20" to " ". */
static void decode(char *path)
{
    char *to = path;
    for (const char *p = path; *p; to++) {
        unsigned c = (unsigned char)*p;
        if (*p == '%' && sscanf(p + 1, "%2x", &c) == 1)
            p += 2;
        *to = (char)c;
        p++;
    }
    *to = '\0';
}

static void answer(int fd)
{
    char request[4096], path[1024] = "", *range;
    size_t n = 0, from = 0, to = SIZE_MAX;
    ssize_t got;
    while (n < sizeof(request) - 1 &&
           (got = recv(fd, request + n, sizeof(request) - 1 - n, 0)) > 0) {
        n += (size_t)got;
        request[n] = '\0';
        if (strstr(request, "\r\n\r\n"))
            break;
    }
    web.n_requests++;
    if (n == 0 || sscanf(request, "GET %1023s", path) != 1)
        return;
    decode(path);
    bool ranged = (range = strstr(request, "Range: bytes=")) && !web.no_ranges;
    if (ranged) {
        from = strtoul(range + 13, &range, 10);
        to = range[1] >= '0' && range[1] <= '9' ? strtoul(range + 1, NULL, 10) : SIZE_MAX;
        web.n_ranges += from > 0;
        web.last_from = from > 0 ? from : web.last_from;
    }
    if (strcmp(path, "/loop") == 0) {
        say(fd, "HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\nConnection: "
                "close\r\n\r\n");
    } else if (strcmp(path, "/moved") == 0) {
        say(fd, "HTTP/1.1 302 Found\r\nLocation: /m.gguf\r\nContent-Length: 0\r\nConnection: "
                "close\r\n\r\n");
    } else if (strcmp(path, "/m.gguf") == 0) {
        static uint8_t bad[BIG];
        memcpy(bad, content, BIG);
        bad[BIG / 2] ^= 1;
        send_body(fd, web.corrupt ? bad : content, BIG, from, to < BIG ? to : BIG - 1, ranged);
    } else {
        answer_file(fd, path, from, to, ranged);
    }
}

static void *serve(void *arg)
{
    (void)arg;
    while (!web.stop) {
        int fd = accept(web.fd, NULL, NULL);
        if (fd < 0)
            break;
        answer(fd);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
    return NULL;
}

static void start_web(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    web.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(web.fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(web.fd, 16), 0);
    assert_int_equal(getsockname(web.fd, (struct sockaddr *)&a, &n), 0);
    web.port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&web.thread, NULL, serve, NULL), 0);
}

static const char *url(const char *path)
{
    static char out[4][2 * PATH_MAX];
    static unsigned turn;
    char *to = out[turn++ & 3];
    snprintf(to, 2 * PATH_MAX, "http://127.0.0.1:%d%s", web.port, path);
    return to;
}

static void behave(void)
{
    web.break_after = 0;
    web.no_ranges = web.corrupt = web.wrong_range = web.hang = false;
    web.n_requests = web.n_ranges = 0;
    web.n_bytes = web.n_sent = web.last_from = 0;
}

/* ---- a node that fetches ---- */

struct site {
    struct model_store *store;
    struct model_fetcher *fetcher;
    struct executor_queue queue;
    bool over;
    int rc;
    char path[PATH_MAX];
    struct err e;
};

static void on_done(void *ctx, int rc, const char *path, const struct err *e)
{
    struct site *s = ctx;
    s->over = true;
    s->rc = rc;
    s->e = *e;
    snprintf(s->path, sizeof(s->path), "%s", path);
}

static void open_site(struct site *s, uint64_t max_bytes)
{
    char name[32];
    const char *folders[] = {at("allowed")};
    struct err e = {0};
    *s = (struct site){.rc = 0};
    behave();
    mkdir(folders[0], 0755);
    snprintf(name, sizeof(name), "store-%u", n_stores++);
    const struct model_store_opts so = {.dir = at(name), .max_bytes = max_bytes};
    if (model_store_open(&s->store, &so, &e) < 0 || executor_queue_init(&s->queue, &e) < 0)
        fail_msg("%s", e.msg);
    const struct model_fetcher_opts fo = {.store = s->store,
                                          .executor = &s->queue.executor,
                                          .folders = folders,
                                          .n_folders = 1,
                                          .silent_ms = 60000,
                                          .backoff_ms = 1};
    if (model_fetcher_create(&s->fetcher, &fo, &e) < 0)
        fail_msg("%s", e.msg);
}

static void close_site(struct site *s)
{
    model_fetcher_destroy(s->fetcher);
    (void)executor_queue_run(&s->queue);
    executor_queue_fini(&s->queue);
    model_store_close(s->store);
}

static struct model_fetch *start(struct site *s, const uint8_t *sum, const char *a, const char *b)
{
    const struct model_fetch_source sources[] = {{a, NULL}, {b, NULL}};
    const struct model_fetch_watch w = {.ctx = s, .done = on_done};
    struct model_fetch *job;
    struct err e = {0};
    s->over = false;
    if (model_fetch_start(&job, s->fetcher, "m", sum, sources, b ? 2 : 1, &w, &e) < 0)
        fail_msg("%s", e.msg);
    return job;
}

static int wait_done(struct site *s)
{
    for (int turns = 0; !s->over && turns < 60; turns++)
        (void)executor_queue_turn(&s->queue, 1000);
    assert_true(s->over);
    return s->rc;
}

static int run(struct site *s, const uint8_t *sum, const char *a, const char *b)
{
    (void)start(s, sum, a, b);
    return wait_done(s);
}

static void assert_good(struct site *s)
{
    struct buf b;
    if (s->rc < 0)
        fail_msg("%s", s->e.msg);
    buf_init(&b, 1 << 20);
    assert_int_equal(file_read(s->path, &b, NULL), 0);
    assert_int_equal(b.len, BIG);
    assert_memory_equal(buf_str(&b), content, BIG);
    buf_fini(&b);
}

/* ---- tests ---- */

static void test_one_file(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    assert_int_equal(run(&s, content_sum, url("/m.gguf?download=true"), NULL), SHOAL_ENOTFOUND);
    assert_int_equal(run(&s, content_sum, url("/m.gguf"), NULL), 0);
    assert_good(&s);
    assert_string_equal(strrchr(s.path, '/'), "/m.gguf");
    web.n_requests = 0;
    assert_int_equal(run(&s, content_sum, url("/m.gguf"), NULL), 0); /* already there */
    assert_int_equal(web.n_requests, 0);
    close_site(&s);
}

static void test_a_folder(void **state)
{
    struct site s;
    struct model_store *from;
    struct err e = {0};
    const struct model_store_opts so = {.dir = at("from")};
    char hex[2 * SHA256_BYTES + 1], base[PATH_MAX];
    uint8_t sum[SHA256_BYTES];
    (void)state;
    open_site(&s, 0);
    mkdir(at("ox"), 0755);
    mkdir(at("ox/onnx"), 0755);
    const char *names[] = {"ox/onnx/model.onnx", "ox/onnx/model.onnx data", "ox/config.json"};
    for (size_t i = 0; i < 3; i++) {
        FILE *f = fopen(at(names[i]), "w");
        assert_non_null(f);
        fputs(names[i], f);
        fclose(f);
    }
    assert_int_equal(model_store_open(&from, &so, NULL), 0);
    if (model_put(from, at("ox/onnx/model.onnx"), NULL, sum, &go_on, &e) < 0)
        fail_msg("%s", e.msg);
    snprintf(web.root, sizeof(web.root), "%s/models", model_store_dir(from));
    sha256_hex(hex, sum);
    snprintf(base, sizeof(base), "/%s/", hex);
    if (run(&s, sum, url(base), NULL) < 0)
        fail_msg("%s", s.e.msg);
    assert_string_equal(strrchr(s.path, '/'), "/model.onnx");
    assert_int_equal(model_store_verify(s.store, sum, &go_on, NULL), 0);
    /* the manifest of another model */
    sum[0] ^= 1;
    assert_int_equal(run(&s, sum, url(base), NULL), SHOAL_EFORMAT);
    model_store_close(from);
    close_site(&s);
}

static void test_goes_on_after_a_break(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    web.break_after = BIG / 3;
    assert_int_equal(run(&s, content_sum, url("/m.gguf"), NULL), 0);
    assert_good(&s);
    assert_int_equal(web.n_ranges, 1);
    assert_int_equal(web.last_from, BIG / 3);
    assert_int_equal(web.n_bytes, BIG + 1); /* nothing twice; one byte to learn the size */
    close_site(&s);
}

static void test_a_server_without_ranges(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    web.no_ranges = true;
    web.break_after = BIG / 3;
    assert_int_equal(run(&s, content_sum, url("/m.gguf"), NULL), 0);
    assert_good(&s);
    close_site(&s);
}

static void test_another_range_than_asked(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    web.break_after = BIG / 3;
    web.wrong_range = true;
    assert_true(run(&s, content_sum, url("/m.gguf"), NULL) < 0);
    assert_non_null(strstr(s.e.msg, "a different range"));
    close_site(&s);
}

static void test_wrong_bytes(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    web.corrupt = true;
    assert_int_equal(run(&s, content_sum, url("/m.gguf"), NULL), SHOAL_EFORMAT);
    assert_non_null(strstr(s.e.msg, "/m.gguf")); /* the error names it */
    assert_non_null(strstr(s.e.msg, "SHA-256"));
    uint32_t asked = web.n_requests;
    assert_int_equal(asked, 2); /* the size and the file; no retry at once */
    /* a second source; the liar is skipped */
    web.corrupt = false;
    snprintf(web.root, sizeof(web.root), "%s", dir);
    assert_int_equal(run(&s, content_sum, url("/m.gguf"), url("/good.gguf")), 0);
    assert_good(&s);
    assert_string_equal(strrchr(s.path, '/'), "/good.gguf");
    close_site(&s);
}

static void test_redirects(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    assert_int_equal(run(&s, content_sum, url("/moved"), NULL), 0);
    assert_good(&s);
    close_site(&s);
    open_site(&s, 0);
    assert_int_equal(run(&s, content_sum, url("/loop"), NULL), SHOAL_EFORMAT);
    assert_non_null(strstr(s.e.msg, "redirects"));
    assert_true(web.n_requests <= 3 * 6);
    close_site(&s);
}

static void test_cancel(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    web.break_after = BIG / 3;
    web.hang = true;
    struct model_fetch *job = start(&s, content_sum, url("/m.gguf"), NULL);
    while (web.n_sent < BIG / 3)
        usleep(1000);
    model_fetch_cancel(job);
    web.hang = false;
    assert_int_equal(wait_done(&s), SHOAL_ECANCELLED);
    /* data received earlier is not requested again */
    web.n_bytes = 0;
    assert_int_equal(run(&s, content_sum, url("/m.gguf"), NULL), 0);
    assert_good(&s);
    assert_true(web.n_bytes <= BIG + 1);
    close_site(&s);
}

static void test_destroy_while_it_runs(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    web.break_after = BIG / 3;
    web.hang = true;
    (void)start(&s, content_sum, url("/m.gguf"), NULL);
    while (web.n_sent < BIG / 3)
        usleep(1000);
    web.hang = false;
    close_site(&s);
    assert_false(s.over); /* no callback after destroy */
}

static void test_the_same_twice(void **state)
{
    const struct model_fetch_watch w = {.done = on_done};
    const struct model_fetch_source source = {url("/m.gguf"), NULL};
    struct model_fetch *again;
    struct site s;
    (void)state;
    open_site(&s, 0);
    web.hang = true;
    (void)start(&s, content_sum, url("/m.gguf"), NULL);
    assert_int_equal(model_fetch_start(&again, s.fetcher, "m", content_sum, &source, 1, &w, NULL),
                     SHOAL_EBUSY);
    web.hang = false;
    assert_int_equal(wait_done(&s), 0);
    close_site(&s);
}

static void test_no_room(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, BIG / 2);
    assert_int_equal(run(&s, content_sum, url("/m.gguf"), NULL), SHOAL_ELIMIT);
    assert_non_null(strstr(s.e.msg, "store_limit"));
    assert_int_equal(web.n_requests, 1); /* only the one for its size */
    close_site(&s);
}

static void test_files_of_this_machine(void **state)
{
    struct site s;
    char path[PATH_MAX];
    (void)state;
    open_site(&s, 0);
    snprintf(path, sizeof(path), "file://%s", at("good.gguf"));
    assert_true(run(&s, content_sum, path, NULL) < 0);
    assert_non_null(strstr(s.e.msg, "model_dirs"));
    snprintf(path, sizeof(path), "file://%s", at("allowed/../good.gguf"));
    assert_true(run(&s, content_sum, path, NULL) < 0);
    assert_int_equal(symlink(at("good.gguf"), at("allowed/link.gguf")), 0);
    snprintf(path, sizeof(path), "file://%s", at("allowed/link.gguf"));
    assert_true(run(&s, content_sum, path, NULL) < 0);
    unlink(at("allowed/link.gguf"));
    assert_int_equal(link(at("good.gguf"), at("allowed/m.gguf")), 0);
    snprintf(path, sizeof(path), "file://%s", at("allowed/m.gguf"));
    assert_int_equal(run(&s, content_sum, path, NULL), 0);
    assert_good(&s);
    unlink(at("allowed/m.gguf"));
    close_site(&s);
}

static void test_sources_that_are_none(void **state)
{
    struct site s;
    (void)state;
    open_site(&s, 0);
    assert_true(run(&s, content_sum, "ftp://127.0.0.1/m.gguf", NULL) < 0);
    assert_non_null(strstr(s.e.msg, "https://"));
    assert_false(fetch_url_ok("http://a b"));
    assert_false(fetch_url_ok("gopher://a"));
    assert_true(fetch_url_ok("https://models.example/a.gguf"));
    close_site(&s);
}

static void test_rate(void **state)
{
    struct byte_rate r;
    const uint64_t second = 1000000000u;
    uint64_t now = 10 * second, sent = 0;
    (void)state;
    byte_rate_init(&r, 1000);
    for (int i = 0; i < 100; i++) { /* a sender that waits when told to */
        uint64_t wait = byte_rate_take(&r, 100, now);
        sent += 100;
        now += wait;
        /* never more than the rate allows, plus a tenth of a second's worth */
        assert_true(sent <= (now - 10 * second) / 1000000u + 100 + 100);
    }
    assert_true(now - 10 * second >= 9 * second);
    byte_rate_init(&r, 0);
    assert_int_equal(byte_rate_take(&r, 1 << 30, now), 0);
}

static int setup(void **state)
{
    struct sha256 h;
    (void)state;
    for (size_t i = 0; i < BIG; i++)
        content[i] = (uint8_t)(i * 7 + i / 251);
    sha256_begin(&h);
    sha256_add(&h, content, BIG);
    if (!sha256_end(&h, content_sum) || !mkdtemp(dir))
        return -1;
    FILE *f = fopen(at("good.gguf"), "w");
    if (!f || fwrite(content, 1, BIG, f) != BIG)
        return -1;
    fclose(f);
    start_web();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    web.stop = true;
    shutdown(web.fd, SHUT_RDWR);
    pthread_join(web.thread, NULL);
    close(web.fd);
    model_store_delete_tree(dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_a_folder),
        cmocka_unit_test(test_goes_on_after_a_break),
        cmocka_unit_test(test_a_server_without_ranges),
        cmocka_unit_test(test_another_range_than_asked),
        cmocka_unit_test(test_wrong_bytes),
        cmocka_unit_test(test_redirects),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_destroy_while_it_runs),
        cmocka_unit_test(test_the_same_twice),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_files_of_this_machine),
        cmocka_unit_test(test_sources_that_are_none),
        cmocka_unit_test(test_rate),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

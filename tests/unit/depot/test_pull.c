/* test_pull.c - models from web servers, hubs and registries that the test plays: what is asked
 * for, what ends up in the store, what is resumed, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file_read.h"
#include "depot/model_pull.h"
#include "depot/store/model_store.h"
#include "host/sha256.h"
#include "support/http_peer.h"

#define N_BYTES 5000u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint8_t bytes[N_BYTES];
static char hex[2 * SHA256_BYTES + 1];
static struct http_peer peer;
static char dir[64], said[1024];
static uint32_t n_said;
static struct model_store *store;
static uint64_t n_done, n_total;

static void on_note(void *ctx, const char *text)
{
    (void)ctx;
    snprintf(said, sizeof(said), "%s", text);
    n_said++;
}

static void on_progress(void *ctx, const struct model_progress *p)
{
    (void)ctx;
    assert_true(p->done <= p->total || p->total == 0);
    n_done = p->done;
    n_total = p->total;
}

static void serve(const struct http_peer_file *files, uint32_t n)
{
    http_peer_begin(&peer);
    peer.files = files;
    peer.n_files = n;
}

static int pull_with(struct model_pulled *out, const char *what, const char *as,
                     struct model_source_opts o, struct err *e)
{
    o.store = store;
    o.hub = peer.server;
    o.private_ok = o.plain_http = true;
    static const _Atomic bool never;
    o.stop = &never;
    o.retry_ms = 1;
    o.note = on_note;
    o.progress = on_progress;
    n_done = n_total = 0;
    *e = (struct err){0};
    return model_pull(out, what, as, &o, e);
}

static int pull(struct model_pulled *out, const char *what, const char *as, struct err *e)
{
    return pull_with(out, what, as, (struct model_source_opts){.token = NULL}, e);
}

static void check_stored(const struct model_pulled *p, const char *name)
{
    struct buf b;
    struct err e;
    assert_string_equal(p->name, name);
    buf_init(&b, 1 << 20);
    assert_int_equal(file_read(p->path, &b, &e), 0);
    assert_int_equal(b.len, N_BYTES);
    assert_memory_equal(b.data, bytes, N_BYTES);
    buf_fini(&b);
}

/* How often a path was asked for. */
static uint32_t n_asked(const char *path)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < peer.n; i++) {
        char is[256] = "";
        sscanf(peer.list[i].line, "%*s %255s", is);
        n += strcmp(is, path) == 0;
    }
    return n;
}

static void test_a_file_of_a_web_server(void **state)
{
    static const struct http_peer_file files[] = {
        {"/a/tiny.gguf", "ETag: \"v1\"\r\n", bytes, N_BYTES, 0}};
    struct model_pulled p;
    struct err e;
    char url[256];
    (void)state;
    serve(files, COUNT(files));
    snprintf(url, sizeof(url), "%s/a/tiny.gguf", peer.server);
    assert_int_equal(pull(&p, url, NULL, &e), 0);
    check_stored(&p, "tiny");
    assert_false(p.had);
    assert_int_equal(p.bytes, N_BYTES);
    assert_int_equal(n_done, N_BYTES);
    assert_int_equal(n_total, N_BYTES);
    assert_int_equal(pull(&p, url, "other", &e), 0); /* the same bytes under another name */
    check_stored(&p, "other");
    assert_true(p.had);
    snprintf(url, sizeof(url), "%s/a/nosuch.gguf", peer.server);
    assert_int_equal(pull(&p, url, NULL, &e), SHOAL_ENOTFOUND);
    assert_true(e.msg[0] != '\0');
    snprintf(url, sizeof(url), "%s/a/tiny.gguf#sha256=%s", peer.server, hex);
    assert_int_equal(pull(&p, url, "known", &e), 0);
    check_stored(&p, "known");
    http_peer_end(&peer);
}

/* The hash is known: a wrong file never gets into the store. */
static void test_a_wrong_file(void **state)
{
    static const struct http_peer_file files[] = {{"/b.gguf", "", bytes, N_BYTES - 1, 0}};
    struct model_pulled p;
    struct err e;
    char url[256];
    (void)state;
    serve(files, COUNT(files));
    snprintf(url, sizeof(url), "%s/b.gguf#sha256=%s", peer.server, "00");
    assert_int_equal(pull(&p, url, NULL, &e), SHOAL_EINVAL);
    hex[0] ^= 1;
    snprintf(url, sizeof(url), "%s/b.gguf#sha256=%s", peer.server, hex);
    hex[0] ^= 1;
    assert_true(pull(&p, url, "wrong", &e) < 0);
    assert_true(e.msg[0] != '\0');
    struct model_source_opts o = {.max_bytes = 100};
    snprintf(url, sizeof(url), "%s/b.gguf", peer.server);
    assert_true(pull_with(&p, url, "large", o, &e) < 0);
    const struct model_source_opts only = {.allow = 1u << 30};
    assert_int_equal(pull_with(&p, url, "x", only, &e), SHOAL_EINVAL); /* no such place allowed */
    http_peer_end(&peer);
}

/* What has arrived is kept: the rest is asked for. */
static void test_an_interrupted_one_is_resumed(void **state)
{
    static const struct http_peer_file files[] = {
        {"/c.gguf", "ETag: \"v1\"\r\nAccept-Ranges: bytes\r\n", bytes, N_BYTES, 2000}};
    struct model_pulled p;
    struct err e;
    char url[256];
    bool resumed = false;
    (void)state;
    serve(files, COUNT(files));
    snprintf(url, sizeof(url), "%s/c.gguf#sha256=%s", peer.server, hex);
    int rc = pull(&p, url, "resumed", &e);
    if (rc < 0) /* it may leave that to the next one */
        rc = pull(&p, url, "resumed", &e);
    assert_int_equal(rc, 0);
    check_stored(&p, "resumed");
    for (uint32_t i = 0; i < peer.n; i++)
        resumed |= strcmp(http_peer_header(&peer.list[i], "Range"), "bytes=2000-") == 0;
    assert_true(resumed);
    http_peer_end(&peer);
}

static void test_a_hub(void **state)
{
    static char tree[1024];
    static const char revision[] = "{\"sha\":\"0123456789abcdef0123456789abcdef01234567\"}";
    struct http_peer_file files[] = {
        {"/api/models/org/repo/revision/main", "", revision, sizeof(revision) - 1, 0},
        {"/api/models/org/repo/tree/0123456789abcdef0123456789abcdef01234567?recursive=true", "",
         tree, 0, 0},
        {"/org/repo/resolve/0123456789abcdef0123456789abcdef01234567/m-Q4_K_M.gguf", "", bytes,
         N_BYTES, 0}};
    struct model_source_opts with_token = {.token = "secret"};
    struct model_pulled p;
    struct err e;
    (void)state;
    files[1].n =
        (size_t)snprintf(tree, sizeof(tree),
                         "[{\"type\":\"file\",\"path\":\"README.md\",\"size\":3,\"oid\":"
                         "\"0123456789abcdef0123456789abcdef01234567\"},"
                         "{\"type\":\"file\",\"path\":\"m-Q4_K_M.gguf\",\"size\":%u,\"oid\":"
                         "\"0123456789abcdef0123456789abcdef01234567\",\"lfs\":{\"oid\":\"%s\","
                         "\"size\":%u}},{\"type\":\"file\",\"path\":\"m-Q8_0.gguf\",\"size\":9,"
                         "\"oid\":\"0123456789abcdef0123456789abcdef01234567\","
                         "\"lfs\":{\"oid\":\"%s\",\"size\":9}}]",
                         N_BYTES, hex, N_BYTES, hex);
    serve(files, COUNT(files));
    if (pull_with(&p, "org/repo:Q4_K_M", NULL, with_token, &e) < 0)
        fail_msg("%s", e.msg);
    check_stored(&p, "hf.co/org/repo:Q4_K_M");
    assert_true(n_asked("/api/models/org/repo/revision/main") >= 1);
    assert_string_equal(http_peer_header(&peer.list[0], "Authorization"), "Bearer secret");
    assert_true(pull(&p, "org/repo:Q5_0", NULL, &e) < 0); /* not among its files */
    assert_non_null(strstr(e.msg, "Q5_0"));
    assert_true(pull(&p, "org/none", NULL, &e) < 0);
    assert_non_null(strstr(e.msg, "org/none"));
    assert_true(pull(&p, "org/repo:Q4_K_M@other", NULL, &e) < 0); /* no such revision */
    http_peer_end(&peer);
}

static void test_a_registry(void **state)
{
    static char manifest[1024], blob[128];
    struct http_peer_file files[] = {
        {"/v2/team/m/manifests/1",
         "Content-Type: application/vnd.docker.distribution.manifest.v2+json\r\n", manifest, 0, 0},
        {blob, "", bytes, N_BYTES, 0}};
    char name[128];
    struct model_pulled p;
    struct err e;
    (void)state;
    files[0].n = (size_t)snprintf(manifest, sizeof(manifest),
                                  "{\"schemaVersion\":2,\"config\":{\"mediaType\":\"x\",\"digest\":"
                                  "\"sha256:%s\",\"size\":%u},"
                                  "\"layers\":[{\"mediaType\":\"application/"
                                  "vnd.ollama.image.model\",\"digest\":\"sha256:%s\","
                                  "\"size\":%u}]}",
                                  hex, N_BYTES, hex, N_BYTES);
    snprintf(blob, sizeof(blob), "/v2/team/m/blobs/sha256:%s", hex);
    serve(files, COUNT(files));
    snprintf(name, sizeof(name), "%s/team/m:1", peer.server + strlen("http://"));
    assert_int_equal(pull(&p, name, NULL, &e), 0);
    check_stored(&p, name);
    snprintf(name, sizeof(name), "%s/team/m:2", peer.server + strlen("http://"));
    assert_true(pull(&p, name, NULL, &e) < 0);
    assert_true(e.msg[0] != '\0');
    struct model_source_opts o = {.registry = peer.server};
    assert_int_equal(pull_with(&p, "team/m:1", NULL, o, &e), 0);
    assert_true(p.had);
    http_peer_end(&peer);
}

/* A server that is busy or fails is asked again; one that denies is not. */
static void test_statuses(void **state)
{
    static const struct {
        int status, rc;
    } rows[] = {{401, SHOAL_EINVAL}, {403, SHOAL_EINVAL}, {404, SHOAL_ENOTFOUND}, {410, 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct model_pulled p;
        struct err e;
        char url[256];
        serve(NULL, 0);
        http_peer_status(&peer, rows[i].status);
        snprintf(url, sizeof(url), "%s/x.gguf", peer.server);
        int rc = pull(&p, url, "x", &e);
        assert_true(rc < 0 && e.msg[0]);
        if (rows[i].rc < 0)
            assert_int_equal(rc, rows[i].rc);
        http_peer_end(&peer);
    }
}

/* What is tried several times is told once, and the error at the end is another sentence. */
static void test_a_failure_is_told_once(void **state)
{
    struct model_pulled p;
    struct err e;
    char url[256];
    (void)state;
    serve(NULL, 0);
    http_peer_status(&peer, 200); /* it has a size */
    http_peer_status(&peer, 503); /* and nothing else */
    n_said = 0;
    snprintf(url, sizeof(url), "%s/broken.gguf#sha256=%s", peer.server, hex);
    assert_true(pull(&p, url, "x", &e) < 0);
    assert_true(peer.n > 3);
    assert_int_equal(n_said, 1);
    assert_non_null(strstr(said, "; trying again"));
    assert_null(strstr(e.msg, "trying again"));
    http_peer_end(&peer);
}

static int setup(void **state)
{
    const struct model_store_opts o = {.dir = dir};
    struct sha256 s;
    uint8_t sum[SHA256_BYTES];
    struct err e;
    (void)state;
    for (uint32_t i = 0; i < N_BYTES; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    sha256_begin(&s);
    sha256_add(&s, bytes, N_BYTES);
    assert_true(sha256_end(&s, sum));
    for (uint32_t i = 0; i < SHA256_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
    snprintf(dir, sizeof(dir), "/tmp/shoal-pull-XXXXXX");
    assert_non_null(mkdtemp(dir));
    return model_store_open(&store, &o, &e);
}

static int teardown(void **state)
{
    char command[128];
    (void)state;
    model_store_close(store);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_file_of_a_web_server, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_wrong_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_interrupted_one_is_resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_hub, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_registry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_statuses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failure_is_told_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_deferred_door.c - deferred requests run with the rights that their client has by then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/server/deferred_door.h"
#include "site/deferred/deferred.h"
#include "store/deferred_store.h"
#include "support/gw_site.h"

/* One key of this name is configured; NULL: none. */
static void set_keys(struct gw *gw, const char *name)
{
    struct admission_key key = {
        .sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
    char copy[32];
    struct err e = {0};
    snprintf(copy, sizeof(copy), "%s", name ? name : "");
    key.name = copy;
    const struct admission_opts o = {.keys = &key, .n_keys = name != NULL};
    assert_int_equal(admission_reload(gw->admission, &o, &e), 0);
}

/* The status of the answer to a request that `client` has deferred, when only `key` is left. */
static int status_of(const char *client, const char *key, char *answer, size_t cap)
{
    static const uint8_t digest[DEFERRED_STORE_DIGEST_BYTES] = {1};
    static const char body[] = "{\"model\":\"none\",\"input\":\"a\"}";
    const struct deferred_item item = {.client = client,
                                       .path = "/v1/embeddings",
                                       .query = "",
                                       .headers = "",
                                       .body = body,
                                       .n_body = sizeof(body) - 1};
    const struct deferred_store_opts so = {
        .max_requests = 10, .max_bytes = 1 << 20, .keep_ms = 1000000};
    char dir[] = "/tmp/shoal-deferred-XXXXXX", file[64], command[96], id[DEFERRED_STORE_ID_BYTES];
    static struct gw gw;
    struct deferred d = {.max_ttl_ms = 1000000};
    struct deferred_view v = {0};
    struct buf out;
    struct err e = {0};
    int64_t now = deferred_now_ms();
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/d", dir);
    assert_int_equal(gw_site_open(&gw, 0), 0);
    set_keys(&gw, key);
    assert_int_equal(deferred_store_open(&d.store, file, &so, &e), 0);
    assert_int_equal(deferred_store_put(d.store, &item, digest, NULL, now, now + 1000000, id, &e),
                     0);
    gw.deferred = &d;
    assert_int_equal(deferred_door_create(&gw, &e), 0);
    for (int i = 0; i < 60000 && atomic_load(&d.n_answered) == 0; i++)
        loop_turn(gw.loops[0].loop, 1);
    assert_int_equal(atomic_load(&d.n_answered), 1);
    buf_init(&out, 1 << 20);
    assert_int_equal(deferred_store_show(d.store, client, id, &v, &out, &e), 0);
    assert_int_equal(v.state, DEFERRED_DONE);
    snprintf(answer, cap, "%s", buf_str(&out));
    buf_fini(&out);
    deferred_door_end(&gw.loops[0]);
    gw_site_settle(&gw);
    deferred_door_destroy(&gw);
    gw.deferred = NULL;
    gw_site_close(&gw);
    deferred_store_close(d.store);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
    return v.status;
}

static void test_a_request_whose_key_was_removed_is_refused(void **state)
{
    static const struct {
        const char *client, *key;
        int status;
        const char *word;
    } rows[] = {
        {"app", "app", 404, "none"},          /* it runs, and there is no such model */
        {"app", "other", 401, "was removed"}, /* its key is gone */
        {"", "other", 401, "was removed"},    /* from a time without keys */
        {"app", NULL, 404, "none"},           /* no key is needed any more */
        {"", NULL, 404, "none"},
    };
    char answer[1024];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int status = status_of(rows[i].client, rows[i].key, answer, sizeof(answer));
        if (status != rows[i].status || !strstr(answer, rows[i].word))
            fail_msg("row %zu: %d %s", i, status, answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_request_whose_key_was_removed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

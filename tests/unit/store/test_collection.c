/* test_collection.c - documents in a file: adding, replacing, removing, searching, two handles
 * as in two processes, limits, and files that are not collections. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/chunk.h"
#include "store/collections.h"

#define DIMS 4u

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-collection-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static struct collections *open_all(void)
{
    struct collections *cs;
    struct err e = {0};
    assert_int_equal(collections_open(&cs, dir, 0, &e), 0);
    return cs;
}

static void make(struct collections *cs, const char *name)
{
    const struct collection_settings s = {.model = "embed", .max_tokens = 100, .overlap = 10};
    struct err e = {0};
    if (collections_make(cs, name, &s, &e) < 0)
        fail_msg("%s", e.msg);
}

/* A document of one passage whose vector points along one axis. */
static int put(struct collection *c, const char *name, const char *text, uint32_t axis,
               uint64_t max, struct err *e)
{
    const struct collection_doc d = {.name = name, .title = "T", .hash = strlen(text)};
    const struct chunk k = {.heading = "Head",
                            .heading_bytes = 4,
                            .ref = "r7",
                            .ref_bytes = 2,
                            .text = text,
                            .text_bytes = strlen(text),
                            .page = 3,
                            .n_tokens = 2};
    float v[DIMS] = {0};
    v[axis] = 1;
    return collection_put(c, &d, &k, 1, v, DIMS, "v1", max, e);
}

/* Names of the documents found, in order, separated by spaces. */
static const char *found(struct collection *c, const char *text, int axis, struct arena *a)
{
    float v[DIMS] = {0};
    struct collection_query q = {.text = text, .n_results = 10};
    struct collection_hit *hits;
    struct err e = {0};
    uint32_t n;
    const char *out = "";
    if (axis >= 0) {
        v[axis] = 1;
        q.vector = v;
        q.n_dims = DIMS;
    }
    if (collection_search(c, &q, a, &hits, &n, &e) < 0)
        fail_msg("%s", e.msg);
    for (uint32_t i = 0; i < n; i++)
        out = arena_printf(a, "%s%s%s", out, i ? " " : "", hits[i].doc);
    return out;
}

static void test_found_by_meaning_and_by_words(void **state)
{
    struct collections *cs = open_all();
    struct collection *c;
    struct arena a;
    struct err e = {0};
    (void)state;
    arena_init(&a, 1 << 20);
    make(cs, "one");
    assert_int_equal(collections_hold(cs, "one", &c, &e), 0);
    assert_string_equal(found(c, "anything", 0, &a), "");
    assert_int_equal(put(c, "pump", "The pump is running hot", 0, 0, &e), 0);
    assert_int_equal(put(c, "valve", "Valves close slowly", 1, 0, &e), 0);
    assert_string_equal(found(c, "valve", -1, &a), "valve"); /* stemmed */
    assert_string_equal(found(c, NULL, 0, &a), "pump valve");
    assert_string_equal(found(c, "the closing of valves", 1, &a), "valve pump");
    assert_string_equal(found(c, "\"; DROP TABLE -- (", -1, &a), "");
    assert_string_equal(found(c, "", -1, &a), "");
    struct collection_query q = {.text = "hot pump", .n_results = 1};
    struct collection_hit *hit;
    uint32_t n;
    assert_int_equal(collection_search(c, &q, &a, &hit, &n, &e), 0);
    assert_int_equal(n, 1);
    assert_string_equal(hit->title, "T");
    assert_string_equal(hit->heading, "Head");
    assert_string_equal(hit->ref, "r7");
    assert_string_equal(hit->text, "The pump is running hot");
    assert_int_equal(hit->page, 3);
    assert_int_equal(hit->by_words, 1);
    assert_true(isnan(hit->similarity));
    collections_release(cs, c);
    collections_close(cs);
    arena_fini(&a);
}

static void test_replacing_and_removing(void **state)
{
    struct collections *cs = open_all(), *other = open_all();
    struct collection *c, *d;
    struct collection_info info;
    struct arena a;
    struct err e = {0};
    (void)state;
    arena_init(&a, 1 << 20);
    make(cs, "two");
    assert_int_equal(collections_hold(cs, "two", &c, &e), 0);
    assert_int_equal(collections_hold(other, "two", &d, &e), 0);
    assert_int_equal(put(c, "a", "alpha", 0, 0, &e), 0);
    assert_string_equal(found(d, "alpha", 0, &a), "a");
    assert_int_equal(put(c, "a", "beta!", 1, 0, &e), 0); /* replaces; the other handle sees it */
    assert_string_equal(found(d, "alpha", -1, &a), "");
    assert_string_equal(found(d, NULL, 1, &a), "a");
    assert_int_equal(collection_has(d, "a", 5, &e), 1);
    assert_int_equal(collection_has(d, "a", 6, &e), 0);
    assert_int_equal(put(d, "b", "gamma", 2, 0, &e), 0);
    assert_string_equal(found(c, NULL, 2, &a), "b a");
    assert_int_equal(collection_remove(c, "a", &e), 0);
    assert_int_equal(collection_remove(c, "a", &e), SHOAL_ENOTFOUND);
    assert_string_equal(found(d, NULL, 1, &a), "b");
    assert_int_equal(collection_info(d, &info, &e), 0);
    assert_int_equal(info.n_docs, 1);
    assert_int_equal(info.n_chunks, 1);
    assert_int_equal(info.n_dims, DIMS);
    assert_string_equal(info.model, "embed");
    collections_release(cs, c);
    collections_release(other, d);
    collections_close(cs);
    collections_close(other);
    arena_fini(&a);
}

static void test_limits_and_other_models(void **state)
{
    const struct collection_doc doc = {.name = "x", .title = ""};
    const struct chunk k = {.heading = "", .ref = "", .text = "t", .text_bytes = 1};
    struct collections *cs = open_all();
    struct collection *c;
    struct err e = {0};
    float v[DIMS + 1] = {1};
    (void)state;
    make(cs, "three");
    assert_int_equal(collections_hold(cs, "three", &c, &e), 0);
    assert_int_equal(put(c, "a", "alpha", 0, 1, &e), 0);
    assert_int_equal(put(c, "a", "alpha2", 0, 1, &e), 0); /* replaces: still one */
    assert_int_equal(put(c, "b", "beta", 0, 1, &e), SHOAL_ELIMIT);
    assert_int_equal(collection_put(c, &doc, &k, 1, v, DIMS + 1, "v1", 0, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "another model"));
    assert_int_equal(collection_put(c, &doc, &k, 1, v, DIMS, "v2", 0, &e), SHOAL_EINVAL);
    assert_int_equal(collection_put(c, &doc, &k, 1, v, DIMS, "", 0, &e), 0); /* unknown */
    collections_release(cs, c);
    collections_close(cs);
}

/* New weights under the old name: their vectors must not be compared with the old ones. */
static void test_a_query_of_another_version_is_refused(void **state)
{
    float v[DIMS + 1] = {1};
    struct collection_query q = {.vector = v, .n_dims = DIMS, .n_results = 3};
    struct collections *cs = open_all();
    struct collection *c;
    struct collection_hit *hits;
    struct arena a;
    struct err e = {0};
    uint32_t n;
    (void)state;
    arena_init(&a, 1 << 20);
    make(cs, "versions");
    assert_int_equal(collections_hold(cs, "versions", &c, &e), 0);
    q.version = "v2";
    assert_int_equal(collection_search(c, &q, &a, &hits, &n, &e), 0); /* still empty */
    assert_int_equal(put(c, "a", "alpha", 0, 0, &e), 0);
    assert_int_equal(collection_search(c, &q, &a, &hits, &n, &e), SHOAL_EINVAL);
    assert_non_null(strstr(e.msg, "version v1"));
    assert_non_null(strstr(e.msg, "now v2"));
    assert_non_null(strstr(e.msg, "add its documents again"));
    q.version = "v1";
    assert_int_equal(collection_search(c, &q, &a, &hits, &n, &e), 0);
    assert_int_equal(n, 1);
    q.version = ""; /* unknown */
    assert_int_equal(collection_search(c, &q, &a, &hits, &n, &e), 0);
    q.n_dims = DIMS + 1;
    assert_int_equal(collection_search(c, &q, &a, &hits, &n, &e), SHOAL_EINVAL);
    const struct collection_query words = {.text = "alpha", .version = "v2", .n_results = 3};
    assert_int_equal(collection_search(c, &words, &a, &hits, &n, &e), 0);
    assert_int_equal(n, 1);
    collections_release(cs, c);
    collections_close(cs);
    arena_fini(&a);
}

static void test_names_lists_and_deletion(void **state)
{
    const struct collection_settings s = {.model = "embed", .max_tokens = 100};
    struct collections *cs = open_all();
    struct collection *c;
    struct arena a;
    const char **names;
    char path[128];
    struct err e = {0};
    uint32_t n;
    (void)state;
    arena_init(&a, 1 << 20);
    assert_int_equal(collections_make(cs, "../x", &s, &e), SHOAL_EINVAL);
    assert_int_equal(collections_make(cs, "", &s, &e), SHOAL_EINVAL);
    make(cs, "four");
    assert_int_equal(collections_make(cs, "four", &s, &e), SHOAL_EINVAL);
    assert_int_equal(collections_hold(cs, "nope", &c, &e), SHOAL_ENOTFOUND);
    assert_int_equal(collections_list(cs, &a, &names, &n, &e), 0);
    assert_true(n >= 1);
    assert_int_equal(collections_hold(cs, "four", &c, &e), 0);
    assert_int_equal(collections_delete(cs, "four", &e), 0);
    assert_int_equal(put(c, "a", "still works", 0, 0, &e), 0);
    collections_release(cs, c);
    assert_int_equal(collections_hold(cs, "four", &c, &e), SHOAL_ENOTFOUND);
    assert_int_equal(collections_delete(cs, "four", &e), SHOAL_ENOTFOUND);
    snprintf(path, sizeof(path), "%s/five.db", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("this is not a database, and it is longer than a header of one would be, see?", f);
    for (int i = 0; i < 100; i++)
        fputs("0123456789", f);
    fclose(f);
    assert_int_equal(collections_hold(cs, "five", &c, &e), SHOAL_EFORMAT);
    collections_close(cs);
    arena_fini(&a);
}

/* ---- searches during changes ---- */

struct shared {
    struct collection *c;
    _Atomic bool over;
};

static void *search_on(void *arg)
{
    struct shared *s = arg;
    while (!atomic_load(&s->over)) {
        const struct collection_query q = {.text = "steady", .n_results = 5};
        struct collection_hit *hits;
        struct arena a;
        struct err e = {0};
        uint32_t n;
        arena_init(&a, 1 << 20);
        int rc = collection_search(s->c, &q, &a, &hits, &n, &e);
        bool ok = rc == 0 && n >= 1 && strstr(hits[0].text, "steady");
        arena_fini(&a);
        if (!ok)
            return (void *)1;
    }
    return NULL;
}

static void test_searches_beside_changes(void **state)
{
    struct collections *cs = open_all();
    struct shared s = {.over = false};
    pthread_t thread;
    struct err e = {0};
    void *rc;
    (void)state;
    make(cs, "six");
    assert_int_equal(collections_hold(cs, "six", &s.c, &e), 0);
    assert_int_equal(put(s.c, "steady", "steady text", 0, 0, &e), 0);
    assert_int_equal(pthread_create(&thread, NULL, search_on, &s), 0);
    for (int i = 0; i < 30; i++) {
        assert_int_equal(put(s.c, "moving", i % 2 ? "odd" : "even", 1, 0, &e), 0);
        if (i % 5 == 0)
            assert_int_equal(collection_remove(s.c, "moving", &e), 0);
    }
    atomic_store(&s.over, true);
    pthread_join(thread, &rc);
    assert_null(rc);
    collections_release(cs, s.c);
    collections_close(cs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_by_meaning_and_by_words),
        cmocka_unit_test(test_replacing_and_removing),
        cmocka_unit_test(test_limits_and_other_models),
        cmocka_unit_test(test_a_query_of_another_version_is_refused),
        cmocka_unit_test(test_names_lists_and_deletion),
        cmocka_unit_test(test_searches_beside_changes),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

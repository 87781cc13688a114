/* test_hit_json.c - passages and collections as JSON: unknown values are omitted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "knowledge/hit_json.h"

static void test_passage(void **state)
{
    struct collection_hit h = {.id = 7,
                               .doc = "a.md",
                               .title = "A \"title\"",
                               .heading = "",
                               .ref = "",
                               .text = "text",
                               .score = 0.5,
                               .similarity = NAN,
                               .by_words = 1};
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    struct json_out j = json_out_make(&b);
    hit_json_put(&j, &h, true);
    assert_string_equal(
        buf_str(&b), "{\"id\":7,\"document\":\"a.md\",\"title\":\"A \\\"title\\\"\",\"score\":0.5,"
                     "\"rank_by_words\":1,\"text\":\"text\"}");
    buf_clear(&b);
    h.page = 3;
    h.similarity = 0.25f;
    h.by_words = 0;
    h.by_vector = 2;
    j = json_out_make(&b);
    hit_json_put(&j, &h, false);
    assert_string_equal(buf_str(&b),
                        "{\"id\":7,\"document\":\"a.md\",\"title\":\"A \\\"title\\\"\",\"page\":3,"
                        "\"score\":0.5,\"similarity\":0.25,\"rank_by_meaning\":2}");
    buf_fini(&b);
}

static void test_collection(void **state)
{
    const struct collection_info info = {.model = "embed", .n_dims = 384, .n_docs = 2};
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    hit_json_info(&j, "manuals", &info);
    json_out_object_end(&j);
    assert_string_equal(
        buf_str(&b), "{\"name\":\"manuals\",\"model\":\"embed\",\"dimensions\":384,"
                     "\"chunk_tokens\":0,\"overlap\":0,\"documents\":2,\"passages\":0,\"bytes\":0,"
                     "\"file_bytes\":0,\"memory_bytes\":0,\"indexed\":0}");
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passage),
        cmocka_unit_test(test_collection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is taken out of logs and settings before they are given away, and what stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "privacy/scrub.h"

static void test_texts(void **state)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"", ""},
        {"model loaded path=/srv/models/qwen2-0.5b-instruct-q8_0.gguf ms=12", NULL},
        {"shoal_generated_tokens_total{model=\"SmolLM2-135M-Instruct-Q4_K_M\"} 17", NULL},
        {"req=req_a6ad1afb18550245 method=GET path=/v1/cluster status=200 us=79", NULL},
        {"trace=0af7651916cd43dd8448eb211c80319c", NULL},
        {"{\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\"}", NULL},
        {"password=hunter2 user=x", "password=(hidden) user=x"},
        {"\"password\": \"s3cr et\", \"a\": 1", "\"password\": \"(hidden) et\", \"a\": 1"},
        {"token: \xc3\xa4!{x", "token: (hidden){x"},
        {"Authorization: Bearer abc.def-123", "Authorization: Bearer (hidden)"},
        {"key=\"anna\"} 5", "key=\"(hidden)\"} 5"},
        {"key:\nnext", "key:\nnext"},
        {"sent sk-abcdef0123456789 on", "sent (hidden) on"},
        {"it was 0af7651916cd43dd8448eb211c80319c", "it was (hidden)"},
        {"a Zm9v_YmFyMTIz-NDU2Nzg5MEFC_QQ12x b", "a (hidden) b"},
        {"GET https://me:pw@hooks.example.org:8443/services/T00?x=1 failed",
         "GET https://hooks.example.org:8443/(hidden) failed"},
        {"nats://10x.lan:4222", NULL},
        {"http://h?secret", "http://h/(hidden)"},
        {"/home/anna.b/.cache/shoal", "/home/(hidden)/.cache/shoal"},
        {"call +49 30 901820 or anna@example.org", "call (phone) or (email)"},
        {"from 192.168.3.44", "from (ip)"},
        {"://", NULL},
        {"token", NULL},
        {"token=", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf b;
        const char *want = rows[i].to ? rows[i].to : rows[i].from;
        buf_init(&b, 4096);
        scrub_text(&b, rows[i].from, strlen(rows[i].from));
        assert_string_equal(buf_str(&b), want);
        assert_int_equal(scrub_is_clean(rows[i].from, strlen(rows[i].from)),
                         strcmp(want, rows[i].from) == 0);
        buf_fini(&b);
    }
}

/* Numbers stay numbers, whatever they look like; strings are scrubbed as texts are. */
static void test_quoted(void **state)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"{\"disk_free\":491729012,\"key\":5,\"token\":null}", NULL},
        {"{\"key\": \"a b\", \"n\": 4111111111111111}",
         "{\"key\": \"(hidden) b\", \"n\": 4111111111111111}"},
        {"{\"a\": \"x\\\"4111111111111111\"}", "{\"a\": \"x\\\"(card)\"}"},
        {"m{key=\"anna\",le=\"0.5\"} 491729012\n", "m{key=\"(hidden)\",le=\"0.5\"} 491729012\n"},
        {"[\"/home/anna/x\", \"+49 30 901820\"]", "[\"/home/(hidden)/x\", \"(phone)\"]"},
        {"\"anna@example.org", "\"(email)"}, /* cut off */
        {"\"\\", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf b;
        buf_init(&b, 4096);
        scrub_quoted(&b, rows[i].from, strlen(rows[i].from));
        assert_string_equal(buf_str(&b), rows[i].to ? rows[i].to : rows[i].from);
        buf_fini(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_quoted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

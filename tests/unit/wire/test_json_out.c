/* test_json_out.c - the JSON writer: escapes, separators, numbers that read back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "wire/json_out.h"

/* Each byte at each place of short and long strings: the writer handles eight bytes at a time. */
static void test_json_out_escapes_every_byte(void **state)
{
    char text[24], want[64];
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    for (size_t n = 1; n <= sizeof(text); n++)
        for (size_t at = 0; at < n; at++)
            for (int c = 0; c < 256; c++) {
                char one[8] = {(char)c};
                memset(text, 'a', n);
                text[at] = (char)c;
                if (c == '"' || c == '\\')
                    snprintf(one, sizeof(one), "\\%c", c);
                else if (c == '\n' || c == '\t' || c == '\r')
                    snprintf(one, sizeof(one), "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
                else if (c < 0x20 || c == 0x7f)
                    snprintf(one, sizeof(one), "\\u%04x", c);
                else if (c >= 0x80)
                    snprintf(one, sizeof(one), "\xef\xbf\xbd");
                snprintf(want, sizeof(want), "\"%.*s%s%.*s\"", (int)at, "aaaaaaaaaaaaaaaaaaaaaaaa",
                         one, (int)(n - at - 1), "aaaaaaaaaaaaaaaaaaaaaaaa");
                buf_clear(&b);
                struct json_out j = json_out_make(&b);
                json_out_strn(&j, text, n);
                assert_string_equal(buf_str(&b), want);
            }
    buf_fini(&b);
}

/* Every number reads back as the same value, in as few digits as %g needs. */
static void test_json_out_numbers_read_back(void **state)
{
    static const double edges[] = {0.0,     -0.0,    1.0,  -2.5,  0.1,    0.3,      1e-4,
                                   9.9e-5,  1e9,     1e15, 1e16,  1e22,   1e23,     5e-324,
                                   1.7e308, 1.0 / 3, 1e-7, 123.0, 999999, 99999.95, 0.00012345};
    uint64_t x = 88172645463325252u;
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    for (int i = 0; i < 40000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double scale = (double)((x >> 20) % 1000000007u) / 1e5;
        double v = i < 21       ? edges[i]
                   : i % 4 == 0 ? scale / 1e4
                   : i % 4 == 1 ? -scale / 3.0
                   : i % 4 == 2 ? (double)(int64_t)x / 1e20
                                : round(scale * 100) / 100;
        struct json_out j = json_out_make(&b);
        char want[320];
        int digits = 1;
        do
            snprintf(want, sizeof(want), "%.*g", digits++, v);
        while (strtod(want, NULL) != v);
        buf_clear(&b);
        json_out_num(&j, v);
        if (strtod(buf_str(&b), NULL) != v || (!strchr(want, 'e') && strcmp(want, b.data) != 0))
            fail_msg("%.17g: %s, expected %s", v, buf_str(&b), want);
        float f = (float)v;
        digits = 1;
        do
            snprintf(want, sizeof(want), "%.*g", digits++, (double)f);
        while (strtof(want, NULL) != f);
        buf_clear(&b);
        j = json_out_make(&b);
        json_out_float(&j, f);
        if (isfinite(f) && (strtof(buf_str(&b), NULL) != f || strlen(b.data) > strlen(want) + 6))
            fail_msg("%.9g: %s, expected %s", (double)f, buf_str(&b), want);
    }
    buf_fini(&b);
}

static void test_json_out_rounds(void **state)
{
    static const struct {
        double v;
        int decimals;
        const char *want;
    } cases[] = {{0, 6, "0"},
                 {0.0000004, 6, "0"},
                 {-0.0000004, 6, "0"},
                 {0.0000006, 6, "0.000001"},
                 {1.5, 6, "1.5"},
                 {-2.25, 1, "-2.2"},
                 {12345.6789, 3, "12345.679"},
                 {1e300, 6, "1e+300"},
                 {1.0 / 0.0, 6, "null"}};
    struct buf b;
    (void)state;
    buf_init(&b, 100);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct json_out j = json_out_make(&b);
        buf_clear(&b);
        json_out_rounded(&j, cases[i].v, cases[i].decimals);
        assert_string_equal(buf_str(&b), cases[i].want);
    }
    buf_fini(&b);
}

static void test_json_out_escapes_and_separates(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, 1000);
    struct json_out j = json_out_make(&b);
    json_out_object(&j);
    json_out_key(&j, "a\"b");
    json_out_strn(&j, "x\n\xff\xc3\xa9\x01", 6);
    json_out_key(&j, "n");
    json_out_array(&j);
    json_out_int(&j, -3);
    json_out_num(&j, 0.1);
    json_out_float(&j, 0.1f);
    json_out_num(&j, 1.0 / 0.0);
    json_out_bool(&j, true);
    json_out_array_end(&j);
    json_out_key(&j, "z");
    json_out_null(&j);
    json_out_object_end(&j);
    assert_string_equal(buf_str(&b), "{\"a\\\"b\":\"x\\n\xef\xbf\xbd\xc3\xa9\\u0001\","
                                     "\"n\":[-3,0.1,0.1,null,true],\"z\":null}");
    buf_fini(&b);
}

/* Text that is already JSON is put between commas like any other value; NaN and infinity become
 * null.
 */
static void test_json_out_takes_json(void **state)
{
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    struct json_out j = json_out_make(&b);
    json_out_array(&j);
    json_out_raw(&j, "{\"a\":1}", 7);
    json_out_object(&j);
    json_out_key(&j, "raw");
    json_out_raw(&j, "[]", 2);
    json_out_member_num(&j, "nan", (double)NAN);
    json_out_member_num(&j, "infinite", -(double)INFINITY);
    json_out_object_end(&j);
    json_out_array_end(&j);
    assert_string_equal(buf_str(&b), "[{\"a\":1},{\"raw\":[],\"nan\":null,\"infinite\":null}]");
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_out_escapes_and_separates),
        cmocka_unit_test(test_json_out_escapes_every_byte),
        cmocka_unit_test(test_json_out_numbers_read_back),
        cmocka_unit_test(test_json_out_rounds),
        cmocka_unit_test(test_json_out_takes_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

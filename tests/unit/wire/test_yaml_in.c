/* test_yaml_in.c - wire/yaml_in.h: values with units, and errors with their position. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/yaml_in.h"

struct doc {
    size_t bytes;
    double bytes_per, num, rate, share;
    uint32_t ms, u32, n_items;
    int32_t i32;
    bool flag;
    char *str;
    struct yaml_in_strs strs;
};

static int add_item(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    struct doc *d = r->ctx;
    if (!yaml_in_scalar(v))
        return yaml_in_fail(r, v, "%s must be a text", name);
    d->n_items++;
    return 0;
}

static int read_items(struct yaml_in *r, yaml_node_t *v, const char *name)
{
    return yaml_in_each(r, v, name, add_item);
}

#define AT(member) offsetof(struct doc, member)
static const struct yaml_in_key table[] = {{"bytes", YAML_IN_BYTES, AT(bytes), NULL},
                                           {"bytes_per", YAML_IN_BYTES_PER, AT(bytes_per), NULL},
                                           {"num", YAML_IN_NUM, AT(num), NULL},
                                           {"rate", YAML_IN_RATE, AT(rate), NULL},
                                           {"share", YAML_IN_SHARE, AT(share), NULL},
                                           {"ms", YAML_IN_MS, AT(ms), NULL},
                                           {"u32", YAML_IN_U32, AT(u32), NULL},
                                           {"i32", YAML_IN_I32, AT(i32), NULL},
                                           {"flag", YAML_IN_BOOL, AT(flag), NULL},
                                           {"str", YAML_IN_STR, AT(str), NULL},
                                           {"strs", YAML_IN_STRS, AT(strs), NULL},
                                           {"items", YAML_IN_CUSTOM, 0, read_items}};

static int parse(struct doc *d, const char *text, struct err *e)
{
    memset(d, 0, sizeof(*d));
    return yaml_in_parse(text, strlen(text), "f", table, sizeof(table) / sizeof(table[0]), d, d, e);
}

static void fini(struct doc *d)
{
    mem_free(d->str);
    yaml_in_strs_fini(&d->strs);
}

static const char whole[] = "bytes: 1.5 KiB\nbytes_per: 2GB/s\nnum: 0.5\nrate: 30/m\nshare: 25%\n"
                            "ms: 2m\nu32: 7\ni32: -3\nflag: yes\nstr: hello\nstrs: [a, b]\n"
                            "items: one\n";

static void test_values_and_units(void **state)
{
    struct doc d;
    struct err e = {0};
    (void)state;
    if (parse(&d, whole, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(d.bytes, 1536);
    assert_true(d.bytes_per == 2e9 && d.num == 0.5 && d.rate == 0.5 && d.share == 0.25);
    assert_int_equal(d.ms, 120000);
    assert_int_equal(d.u32, 7);
    assert_int_equal(d.i32, -3);
    assert_true(d.flag);
    assert_string_equal(d.str, "hello");
    assert_int_equal(d.strs.n, 2);
    assert_string_equal(d.strs.v[1], "b");
    assert_int_equal(d.n_items, 1);
    fini(&d);
    assert_int_equal(parse(&d, "strs: one\nitems: [a, b, c]\n", &e), 0);
    assert_int_equal(d.strs.n, 1);
    assert_int_equal(d.n_items, 3);
    fini(&d);
    assert_int_equal(parse(&d, "", &e), 0);
}

static void test_errors_say_where(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"u32: 1\nfrob: 1\n", "f:2:1: unknown key 'frob'"},
        {"byts: 1\n", "f:1:1: unknown key 'byts' (did you mean 'bytes'?)"},
        {"u32: 1\nu32: 2\n", "f:2:1: 'u32' is given twice"},
        {"u32: 1.5\n", "f:1:6: u32 must be a whole number"},
        {"u32: x\n", "f:1:6: u32 must be a number, not 'x'"},
        {"u32: -1\n", "f:1:6: u32 is -1"},
        {"num: nan\n", "f:1:6: num must be a number, not 'nan'"},
        {"num: [1]\n", "f:1:6: num must be a number, not 'a list or map'"},
        {"num: 1 kg\n", "'kg' is not a unit here (known: none)"},
        {"ms: 1 d\n", "'d' is not a unit here (known: ms, s, m, h)"},
        {"share: 120%\n", "f:1:8: share is 120%, it must be from 0 to 1"},
        {"i32: 5000\n", "f:1:6: i32 must be a whole number from -1000 to 1000"},
        {"flag: maybe\n", "f:1:7: flag must be true or false"},
        {"str: [a]\n", "f:1:6: str must be a text"},
        {"strs: [a, [b]]\n", "f:1:11: strs must be a text"},
        {"items:\n  - a\n  - {b: 1}\n", "f:3:5: items must be a text"},
        {"- a\n", "f:1:1: the file must be a map"},
        {"u32: [1\n", "f:2:1: "},
        {"? [a]\n: b\n", "a key that is not a word"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct doc d;
        struct err e = {0};
        int rc = parse(&d, cases[i].text, &e);
        fini(&d);
        if (rc != SHOAL_EFORMAT || !strstr(e.msg, cases[i].want))
            fail_msg("%s: %d %s", cases[i].text, rc, e.msg);
    }
}

static void test_failed_allocations_are_errors(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 100; n++) {
        struct doc d;
        struct err e = {0};
        uint64_t before = mem_calls();
        mem_fail_at(n);
        int rc = parse(&d, whole, &e);
        mem_fail_at(0);
        fini(&d);
        if (mem_calls() - before < n) {
            assert_true(n > 4 && rc == 0);
            return;
        }
        assert_int_equal(rc, SHOAL_ENOMEM);
    }
    fail_msg("more allocations than expected");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values_and_units),
                                       cmocka_unit_test(test_errors_say_where),
                                       cmocka_unit_test(test_failed_allocations_are_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

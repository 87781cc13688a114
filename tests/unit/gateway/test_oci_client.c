/* test_oci_client.c - which addresses a registry may redirect to, and manifests of models. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "gateway/api/ollama/oci_client.h"

static void test_public_addresses(void **state)
{
    static const struct {
        const char *text;
        bool want;
    } cases[] = {
        {"8.8.8.8", true},
        {"172.32.0.1", true},
        {"100.128.0.1", true},
        {"127.0.0.1", false},
        {"127.255.1.2", false},
        {"10.1.2.3", false},
        {"172.16.0.1", false},
        {"172.31.255.1", false},
        {"192.168.1.1", false},
        {"169.254.169.254", false},
        {"100.64.0.1", false},
        {"0.0.0.0", false},
        {"224.0.0.1", false},
        {"255.255.255.255", false},
        {"198.18.0.1", false},
        {"2606:4700::1", true},
        {"::1", false},
        {"::", false},
        {"fe80::1", false},
        {"fc00::1", false},
        {"fd12::1", false},
        {"ff02::1", false},
        {"::ffff:8.8.8.8", true},
        {"::ffff:127.0.0.1", false},
        {"::127.0.0.1", false},
        {"64:ff9b::a00:1", false},
        {"64:ff9b::808:808", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_in four = {.sin_family = AF_INET};
        struct sockaddr_in6 six = {.sin6_family = AF_INET6};
        const bool is4 = inet_pton(AF_INET, cases[i].text, &four.sin_addr) == 1;
        if (!is4)
            assert_int_equal(inet_pton(AF_INET6, cases[i].text, &six.sin6_addr), 1);
        if (oci_client_is_public(is4 ? (const void *)&four : &six) != cases[i].want)
            fail_msg("%s must be %s", cases[i].text, cases[i].want ? "public" : "refused");
    }
}

static void test_folders_are_no_registries(void **state)
{
    (void)state;
    assert_true(oci_client_is_url("https://models.example"));
    assert_true(oci_client_is_url("HTTP://127.0.0.1:5000/"));
    assert_false(oci_client_is_url("/srv/models"));
    assert_false(oci_client_is_url("http"));
}

#define HEX "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"
#define LAYER(kind, digest, size)                                                                  \
    "{\"mediaType\":\"application/vnd.ollama.image." kind "\",\"digest\":\"" digest                \
    "\",\"size\":" size "}"

static void test_manifests(void **state)
{
    static const struct {
        const char *why, *text;
        int want;
    } cases[] = {
        {"a model", "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "]}", 0},
        {"what is of no use is skipped",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "," LAYER("template", "x", "-1") "]}",
         0},
        {"no JSON", "layers", SHOAL_EFORMAT},
        {"no layers", "{}", SHOAL_EFORMAT},
        {"no model", "{\"layers\":[" LAYER("system", "sha256:" HEX, "12") "]}", SHOAL_EFORMAT},
        {"an empty model", "{\"layers\":[" LAYER("model", "sha256:" HEX, "0") "]}", SHOAL_EFORMAT},
        {"another hash", "{\"layers\":[" LAYER("model", "sha512:" HEX, "1") "]}", SHOAL_EFORMAT},
        {"a path", "{\"layers\":[" LAYER("model", "sha256:../x", "1") "]}", SHOAL_EFORMAT},
        {"a negative size", "{\"layers\":[" LAYER("model", "sha256:" HEX, "-1") "]}",
         SHOAL_EFORMAT},
        {"an infinite size", "{\"layers\":[" LAYER("model", "sha256:" HEX, "1e999") "]}",
         SHOAL_EFORMAT},
        {"too large", "{\"layers\":[" LAYER("model", "sha256:" HEX, "1001") "]}", SHOAL_ELIMIT},
        {"a large text",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "," LAYER("license", "sha256:" HEX,
                                                                       "99999999") "]}",
         SHOAL_ELIMIT},
        {"two files",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "," LAYER("model", "sha256:" HEX,
                                                                       "12") "]}",
         SHOAL_EUNSUPPORTED},
        {"an adapter",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "," LAYER("adapter", "sha256:" HEX,
                                                                       "12") "]}",
         SHOAL_EUNSUPPORTED},
    };
    struct oci_manifest m, again;
    struct err e = {0};
    struct buf b;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = oci_manifest_read(&m, cases[i].text, strlen(cases[i].text), 1000, &e);
        if (rc != cases[i].want)
            fail_msg("%s: %d %s", cases[i].why, rc, e.msg);
    }
    assert_int_equal(oci_manifest_read(&m, cases[0].text, strlen(cases[0].text), 1000, &e), 0);
    assert_int_equal(m.parts[OCI_PART_MODEL].bytes, 12);
    assert_null(strpbrk(m.parts[OCI_PART_MODEL].digest, "ABCDEF")); /* digests have one spelling */
    buf_init(&b, OCI_MANIFEST_MAX_BYTES);
    oci_manifest_write(&m, &b);
    assert_int_equal(oci_manifest_read(&again, buf_str(&b), b.len, 1000, &e), 0);
    assert_memory_equal(&m, &again, sizeof(m));
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_public_addresses),
        cmocka_unit_test(test_folders_are_no_registries),
        cmocka_unit_test(test_manifests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

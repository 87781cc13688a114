/* test_web.c - which addresses a server may redirect to, and URLs. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "depot/source/web.h"

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
        {"2002:7f00:1::1", false}, /* 6to4 of 127.0.0.1 */
        {"2002:a9fe:a9fe::1", false},
        {"2002:808:808::1", true},
        {"2001:0:808:808::1", false}, /* Teredo */
        {"2001:db8::1", false},
        {"2001:4860::1", true},
        {"203.0.113.5", false},
        {"198.51.100.1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sockaddr_in four = {.sin_family = AF_INET};
        struct sockaddr_in6 six = {.sin6_family = AF_INET6};
        const bool is4 = inet_pton(AF_INET, cases[i].text, &four.sin_addr) == 1;
        if (!is4)
            assert_int_equal(inet_pton(AF_INET6, cases[i].text, &six.sin6_addr), 1);
        if (web_is_public(is4 ? (const void *)&four : &six) != cases[i].want)
            fail_msg("%s must be %s", cases[i].text, cases[i].want ? "public" : "refused");
    }
}

static void test_folders_are_no_registries(void **state)
{
    (void)state;
    assert_true(web_is_url("https://models.example"));
    assert_true(web_is_url("HTTP://127.0.0.1:5000/"));
    assert_false(web_is_url("/srv/models"));
    assert_false(web_is_url("http"));
}

static void test_origins(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"https://hub.example/a", "https://HUB.example/b?c", true},
        {"https://user:secret@hub.example/a", "https://hub.example/b", true},
        {"https://hub.example", "http://hub.example", false},
        {"https://hub.example", "https://hub.example:8443", false},
        {"https://hub.example", "https://hub.example.evil", false},
        {"https://hub.example", "https://evil@hub.example.evil/@hub.example", false},
    };
    char origin[256];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (web_same_origin(cases[i].a, cases[i].b) != cases[i].same)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
    web_origin(origin, sizeof(origin), "https://user:secret@Hub.example:81/x");
    assert_string_equal(origin, "https://hub.example:81");
    static const char *const urls[][2] = {{"https://user:secret@Hub:81/x@1", "https://Hub:81/x@1"},
                                          {"me:a@b@box:5000/m:1", "box:5000/m:1"},
                                          {"oci://box/m@sha256:1", "oci://box/m@sha256:1"},
                                          {"org/repo:Q4@main", "org/repo:Q4@main"}};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        char plain[256];
        web_without_login(plain, sizeof(plain), urls[i][0]);
        assert_string_equal(plain, urls[i][1]);
    }
}

static void test_texts_in_urls(void **state)
{
    struct buf b;
    (void)state;
    buf_init(&b, 1024);
    web_escape(&b, "a b/c?d#e%\xc3\xa4", "/");
    assert_string_equal(buf_str(&b), "a%20b/c%3Fd%23e%25%C3%A4");
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_public_addresses),
        cmocka_unit_test(test_folders_are_no_registries),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_texts_in_urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_ws.c - what a WebSocket text message may consist of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "net/ws.h"

/* RFC 3629: the shortest form of each code point, no surrogates, nothing above U+10FFFF. */
static void test_text_is_utf8(void **state)
{
    static const struct {
        const char *what, *text;
        bool fine;
    } cases[] = {
        {"nothing", "", true},
        {"ASCII", "a\x7f", true},
        {"the first of two bytes", "\xc2\x80", true},
        {"the last of two bytes", "\xdf\xbf", true},
        {"the first of three bytes", "\xe0\xa0\x80", true},
        {"the last before the surrogates", "\xed\x9f\xbf", true},
        {"the first after the surrogates", "\xee\x80\x80", true},
        {"the last of three bytes", "\xef\xbf\xbf", true},
        {"the first of four bytes", "\xf0\x90\x80\x80", true},
        {"the last code point", "\xf4\x8f\xbf\xbf", true},
        {"a slash in two bytes", "\xc0\xaf", false},
        {"the last that needs one byte, in two", "\xc1\xbf", false},
        {"the last that needs two bytes, in three", "\xe0\x9f\xbf", false},
        {"the last that needs three bytes, in four", "\xf0\x8f\xbf\xbf", false},
        {"the first surrogate", "\xed\xa0\x80", false},
        {"the last surrogate", "\xed\xbf\xbf", false},
        {"above the last code point", "\xf4\x90\x80\x80", false},
        {"five bytes", "\xf8\x88\x80\x80\x80", false},
        {"a byte that continues nothing", "a\x80", false},
        {"an end in the middle", "a\xe2\x82", false},
        {"a letter in the middle", "\xe2\x82z", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (ws_utf8(cases[i].text, strlen(cases[i].text)) != cases[i].fine)
            fail_msg("%s", cases[i].what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_is_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_speech_text.c - what is said for numbers, units, times, dates, money, abbreviations and
 * addresses; any bytes give words, and words stay as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "text/speech/numbers.h"
#include "text/speech/speech_text.h"

struct row {
    const char *text, *said;
};

static const struct row rows[] = {
    /* plain text */
    {"Hello, world!", "hello, world!"},
    {"", ""},
    {"   \n ", ""},
    {"Don't worry.", "don't worry."},
    {"It\xe2\x80\x99s on", "it's on"},
    {"caf\xc3\xa9 na\xc3\xafve", "cafe naive"},
    {"well - yes", "well, yes"},
    {"wait... what?!", "wait. what?"},
    {"one\ntwo", "one. two"},
    {"(see above)", "see above,"},
    {"\"quoted\" text", "quoted text"},
    {"\xf0\x9f\x98\x80 smile", "smile"},
    {"a\x01"
     "b \xff\xfe c",
     "a b c"},
    /* numbers */
    {"0", "zero"},
    {"7", "seven"},
    {"13", "thirteen"},
    {"21", "twenty one"},
    {"100", "one hundred"},
    {"342", "three hundred forty two"},
    {"1,234", "one thousand two hundred thirty four"},
    {"1,234,567", "one million two hundred thirty four thousand five hundred sixty seven"},
    {"3.14", "three point one four"},
    {"0.5", "zero point five"},
    {".5", "point five"},
    {"-5", "minus five"},
    {"it is -12.5 outside", "it is minus twelve point five outside"},
    {"10-15", "ten to fifteen"},
    {"10\xe2\x80\x93"
     "15 min",
     "ten to fifteen minutes"},
    {"007", "zero zero seven"},
    {"+49", "plus forty nine"},
    {"5551234", "five five five one two three four"},
    {"12345678901234567890123", "one two three four five six seven eight nine zero one two three "
                                "four five six seven eight nine zero one two three"},
    {"1/2", "one half"},
    {"3/4 cup", "three quarters cup"},
    {"2/3", "two thirds"},
    {"1/3", "one third"},
    {"22/7", "twenty two over seven"},
    {"version 2.4.1", "version two dot four dot one"},
    {"192.168.1.10", "one hundred ninety two dot one hundred sixty eight dot one dot ten"},
    {"7 \xc3\x97 8 = 56", "seven times eight equals fifty six"},
    {"Zone2", "zone two"},
    /* ordinals */
    {"1st", "first"},
    {"2nd", "second"},
    {"3rd floor", "third floor"},
    {"20th", "twentieth"},
    {"21st", "twenty first"},
    {"112th", "one hundred twelfth"},
    /* years */
    {"in 1995", "in nineteen ninety five"},
    {"in 2026", "in twenty twenty six"},
    {"in 1905", "in nineteen oh five"},
    {"in 1900", "in nineteen hundred"},
    {"in 2005", "in two thousand five"},
    /* units */
    {"21.5 \xc2\xb0"
     "C",
     "twenty one point five degrees celsius"},
    {"1 \xc2\xb0"
     "C",
     "one degree celsius"},
    {"70\xc2\xb0"
     "F",
     "seventy degrees fahrenheit"},
    {"90\xc2\xb0", "ninety degrees"},
    {"50%", "fifty percent"},
    {"50 %", "fifty percent"},
    {"3 kWh", "three kilowatt hours"},
    {"1 kWh", "one kilowatt hour"},
    {"2.5 bar", "two point five bar"},
    {"1500 rpm", "one thousand five hundred r p m"},
    {"80 km/h", "eighty kilometers per hour"},
    {"5 m/s", "five meters per second"},
    {"230 V", "two hundred thirty volts"},
    {"16A", "sixteen amps"},
    {"1.5 l", "one point five liters"},
    {"100 m\xc2\xb2", "one hundred square meters"},
    {"20 min", "twenty minutes"},
    {"1 min", "one minute"},
    {"1 h", "one hour"},
    {"500 ms", "five hundred milliseconds"},
    {"1013 hPa", "one thousand thirteen hectopascals"},
    {"400 ppm", "four hundred parts per million"},
    {"8 GB", "eight gigabytes"},
    {"2.4 GHz", "two point four gigahertz"},
    {"4.2 mm/s", "four point two millimeters per second"},
    {"3 apples", "three apples"},
    {"5 motors", "five motors"},
    /* times */
    {"7:05", "seven oh five"},
    {"at 7:30 pm", "at seven thirty p m"},
    {"at 7:30 a.m.", "at seven thirty ay m."},
    {"at 7 p.m. today", "at seven p m today"},
    {"at 7am", "at seven ay m"},
    {"10:00", "ten o'clock"},
    {"18:45", "eighteen forty five"},
    {"0:15", "zero fifteen"},
    {"1:02:03", "one oh two and three seconds"},
    {"25:99", "twenty five: ninety nine"},
    /* dates */
    {"2026-11-17", "november seventeenth twenty twenty six"},
    {"11/17/2026", "november seventeenth twenty twenty six"},
    {"17.11.2026", "november seventeenth twenty twenty six"},
    {"17/11/2026", "november seventeenth twenty twenty six"},
    {"Nov. 17", "november seventeenth"},
    {"November 17, 2026", "november seventeenth, twenty twenty six"},
    {"March 3rd", "march third"},
    {"17 November", "seventeenth of november"},
    {"2026-13-45", "two thousand twenty six to thirteen forty five"},
    {"May I come", "may i come"},
    /* money */
    {"$5", "five dollars"},
    {"$1", "one dollar"},
    {"$5.20", "five dollars and twenty cents"},
    {"$0.99", "ninety nine cents"},
    {"$1.01", "one dollar and one cent"},
    {"\xe2\x82\xac"
     "20",
     "twenty euros"},
    {"\xc2\xa3"
     "3.50",
     "three pounds and fifty pence"},
    {"$3 million", "three million dollars"},
    {"$1,250.00", "one thousand two hundred fifty dollars"},
    /* abbreviations and letters */
    {"Dr. Smith", "doctor smith"},
    {"Mr. and Mrs. Jones", "mister and misses jones"},
    {"e.g. lamps", "for example lamps"},
    {"i.e. now", "that is now"},
    {"lamps, fans, etc.", "lamps, fans, et cetera."},
    {"approx. 5", "approximately five"},
    {"No. 5", "number five"},
    {"The answer is no.", "the answer is no."},
    {"The answer is no. Try again.", "the answer is no. try again."},
    {"He sat. Then he left.", "he sat. then he left."},
    {"on Sat. at ten", "on saturday at ten"},
    {"St. Mary", "saint mary"},
    {"max. 5", "maximum five"},
    {"the LED", "the l e d"},
    {"two LEDs", "two l e d's"},
    {"USB", "u s b"},
    {"NASA", "nasa"},
    {"TV", "t v"},
    {"WiFi", "why fye"},
    {"CO2", "c o two"},
    {"plan A", "plan ay"},
    {"A lamp", "a lamp"},
    {"HomeAssistant", "home assistant"},
    {"TURN OFF THE LIGHTS", "turn off the lights"},
    {"U.S. law", "u s law"},
    {"living_room", "living room"},
    {"R&D", "r and d"},
    /* addresses */
    {"anna@example.com", "anna at example dot com"},
    {"mail anna.k@example.org.", "mail anna dot k at example dot org."},
    {"https://example.com/a-b", "example dot com slash ay dash b"},
    {"www.example.com", "w w w dot example dot com"},
    {"hub.local:8080", "hub dot local colon eight zero eight zero"},
};

static char *said(const char *text, size_t n)
{
    struct buf out;
    buf_init(&out, (size_t)1 << 24);
    speech_text_normal(text, n, &out);
    assert_int_equal(out.rc, 0);
    char *copy = strdup(buf_str(&out));
    buf_fini(&out);
    return copy;
}

static void test_rows(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *got = said(rows[i].text, strlen(rows[i].text));
        if (strcmp(got, rows[i].said) != 0) {
            printf("\"%s\":\n  got  \"%s\"\n  want \"%s\"\n", rows[i].text, got, rows[i].said);
            wrong++;
        }
        free(got);
    }
    assert_int_equal(wrong, 0);
}

static void test_words_stay(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *once = said(rows[i].text, strlen(rows[i].text)), *twice = said(once, strlen(once));
        assert_string_equal(twice, once);
        free(once);
        free(twice);
    }
}

static bool is_sayable(char c)
{
    return (c >= 'a' && c <= 'z') || strchr("' ,.;:!?", c) != NULL;
}

static void test_any_bytes(void **state)
{
    char bytes[64];
    uint32_t x = 1;
    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        static const char likely[] = "0123456789.,:/-$%@ aAmM'\n";
        for (size_t k = 0; k < sizeof(bytes); k++) {
            x = x * 1664525u + 1013904223u;
            bytes[k] = i % 2 ? likely[(x >> 24) % (sizeof(likely) - 1)] : (char)(x >> 24);
        }
        char *got = said(bytes, sizeof(bytes));
        for (const char *p = got; *p; p++)
            if (!is_sayable(*p))
                fail_msg("'%c' in \"%s\"", *p, got);
        assert_null(strstr(got, "  "));
        free(got);
    }
}

static void test_long_text(void **state)
{
    const size_t n = (size_t)1 << 20;
    char *text = malloc(n);
    (void)state;
    memset(text, '9', n);
    char *got = said(text, n);
    assert_int_equal(strlen(got), n * 5 - 1); /* "nine nine ... nine" */
    free(got);
    free(text);
}

static void test_cut(void **state)
{
    static const char text[] = "one two. three? four, five";
    (void)state;
    assert_int_equal(speech_text_cut(text, strlen(text)), 8);
    assert_int_equal(speech_text_cut(text + 8, strlen(text) - 8), 7);
    assert_int_equal(speech_text_cut(text + 15, strlen(text) - 15), 11);
    assert_int_equal(speech_text_cut(text, 0), 0);
    char *many = malloc(1000);
    memset(many, 'a', 1000);
    assert_int_equal(speech_text_cut(many, 1000), SPEECH_TEXT_PIECE);
    many[100] = ' ';
    assert_int_equal(speech_text_cut(many, 1000), 101);
    many[150] = ',';
    assert_int_equal(speech_text_cut(many, 1000), 151);
    free(many);
}

static void test_numbers(void **state)
{
    static const struct {
        uint64_t n;
        const char *cardinal, *ordinal;
    } list[] = {
        {0, "zero ", "zeroth "},
        {20, "twenty ", "twentieth "},
        {1000, "one thousand ", "one thousandth "},
        {1001, "one thousand one ", "one thousand first "},
        {UINT64_MAX,
         "eighteen quintillion four hundred forty six quadrillion seven hundred forty four "
         "trillion "
         "seventy three billion seven hundred nine million five hundred fifty one thousand six "
         "hundred fifteen ",
         "eighteen quintillion four hundred forty six quadrillion seven hundred forty four "
         "trillion "
         "seventy three billion seven hundred nine million five hundred fifty one thousand six "
         "hundred fifteenth "},
    };
    struct buf b;
    (void)state;
    buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        buf_clear(&b);
        numbers_cardinal(&b, list[i].n);
        assert_string_equal(buf_str(&b), list[i].cardinal);
        buf_clear(&b);
        numbers_ordinal(&b, list[i].n);
        assert_string_equal(buf_str(&b), list[i].ordinal);
    }
    buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_words_stay),
        cmocka_unit_test(test_any_bytes), cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_cut),       cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

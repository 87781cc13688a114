/* test_wording.c - the words of a text: kinds, stems, forms, numbers and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "knowledge/wording.h"

/* Each word as its stem, with a mark for its kind: # number, ! negation, ~ filler, - link, ?
 * question, & owner, @ tense, > particle; then s or d for its form and ^ for a name. */
static void put_words(char *out, size_t cap, const struct wording *w)
{
    static const char *const kinds[] = {"", "#", "!", "~", "-", "?", "&", "@", ">"};
    static const char *const forms[] = {"", "/s", "/d"};
    size_t n = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < w->n; i++)
        n += (size_t)snprintf(out + n, cap - n, "%s%s%s%s%s", i ? " " : "", kinds[w->words[i].kind],
                              w->words[i].stem, forms[w->words[i].form],
                              w->words[i].name ? "^" : "");
}

static void test_words(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"Turn the lights off", "turn -the light/s >off"},
        {"Please switch off my lamps now", "~please turn >off &my light/s ~now"},
        {"What is the capital of France?", "?what -is -the capital -of franc^"},
        {"Berlin is in Germany. Paris is not", "berlin -is -in germany^ pari/s -is !not"},
        {"I can't open it", "-i can !not open -it"},
        {"I won't go", "-i @future !not go"},
        {"They couldn't come", "they can !not arriv"},
        {"we'll see", "@future we see"},
        {"John's car", "john car"},
        {"don't", "!not"},
        {"'quoted'", "quot/d"},
        {"twenty five", "#20 #5"},
        {"the first and the third", "-the #1 -and -the #3"},
        {"half a dozen", "#0.5 -a #12"},
        {"1,000.50 euros", "#1000.5 euro"},
        {"1,000", "#1000"},
        {"1,00", "#1,00"},
        {"10,5", "#10,5"},
        {"2.50", "#2.5"},
        {"2.00", "#2"},
        {"007", "#7"},
        {"0.5", "#0.5"},
        {"7:30", "#7:30"},
        {"3/4", "#3/4"},
        {"21st", "#21"},
        {"22nd", "#22"},
        {"23rd", "#23"},
        {"24th", "#24"},
        {"24the", "#24 -the"},
        {"5 km", "#5 kilometer"},
        {"20 degrees", "#20 degre"},
        {"20\302\260C", "#20 degre celsius"},
        {"20\302\260F", "#20 degre fahrenheit"},
        {"20\302\260", "#20 degre"},
        {"\302\260x", "degre x"},
        {"50%", "#50 percent"},
        {"$20", "dollar #20"},
        {"-5", "minus #5"},
        {"a-5", "-a #5"},
        {"5-6", "#5 #6"},
        {"3.", "#3"},
        {"3.x", "#3 x"},
        {"v2", "v #2"},
        {"cities", "city/s"},
        {"boxes", "box/s"},
        {"glasses", "glass"},
        {"watches", "watch/s"},
        {"dishes", "dish/s"},
        {"gas", "gas"},
        {"news", "news"},
        {"buses", "bus"},
        {"status", "status"},
        {"class", "class"},
        {"cats", "cat/s"},
        {"is", "-is"},
        {"its", "-its"},
        {"us", "us"},
        {"running", "work"},
        {"stopped", "stop/d"},
        {"stopping", "stop"},
        {"called", "call/d"},
        {"calling", "call"},
        {"added", "add"},
        {"planned", "plan/d"},
        {"falling", "fall"},
        {"passed", "pass/d"},
        {"buzzing", "buzz"},
        {"make", "mak"},
        {"use", "use"},
        {"the", "-the"},
        {"bee", "bee"},
        {"see", "see"},
        {"sing", "sing"},
        {"red", "red"},
        {"bed", "bed"},
        {"king", "king"},
        {"needed", "need"},
        {"tries", "try/s"},
        {"ties", "tie/s"},
        {"flies", "fly/s"},
        {"went", "go"},
        {"children", "kid"},
        {"women", "woman"},
        {"left", "left"},
        {"less", "less"},
        {"wi-fi", "wifi wifi"},
        {"He will go", "he @future go"},
        {"She did go", "she @past go"},
        {"It was so", "-it @past -so"},
        {"shall we", "@future we"},
        {"no", "!no"},
        {"nothing", "!nothing"},
        {"cannot", "!cannot"},
        {"never", "!never"},
        {"without", "!without"},
        {"who", "?who"},
        {"whose", "?whose"},
        {"yours", "&yours"},
        {"up", ">up"},
        {"down", ">down"},
        {"explain", "~explain"},
        {"steps", "~step/s"},
        {"thanks", "~thanks"},
        {"much information", "much ~information"},
        {"really?", "~really"},
        {"How many. Many", "?how much much"},
        {"Hello World", "~hello world^"},
        {"the World", "-the world^"},
        {"e.g. Hello", "e g ~hello"},
        {"a b", "-a b"},
        {"caf\303\251 Z\303\274rich", "caf\303\251 z\303\274rich^"},
        {"hr", "hour"},
        {"kg", "kilogram"},
        {"could", "can"},
        {"able", "can"},
        {"unhappy", "sad"},
    };
    static struct wording w;
    char got[1024];
    size_t n_wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        wording_read(&w, rows[i].text, strlen(rows[i].text));
        put_words(got, sizeof(got), &w);
        assert_false(w.cut);
        if (strcmp(got, rows[i].want) != 0) {
            print_error("%s\n  got  %s\n  want %s\n", rows[i].text, got, rows[i].want);
            n_wrong++;
        }
    }
    assert_int_equal(n_wrong, 0);
}

/* Long texts and words end where there is room for them. */
static void test_limits(void **state)
{
    static struct wording w;
    static char text[4096];
    (void)state;
    for (size_t i = 0; i < WORDING_MAX; i++)
        memcpy(text + 3 * i, "zz ", 3);
    wording_read(&w, text, 3 * WORDING_MAX);
    assert_int_equal(w.n, WORDING_MAX);
    assert_false(w.cut);
    memcpy(text + 3 * WORDING_MAX, "yy", 2);
    wording_read(&w, text, 3 * WORDING_MAX + 2);
    assert_int_equal(w.n, WORDING_MAX);
    assert_true(w.cut);
    assert_string_equal(w.words[WORDING_MAX - 1].stem, "zz");
    memset(text, 'y', 100);
    wording_read(&w, text, 100);
    assert_int_equal(w.n, 1);
    assert_int_equal(strlen(w.words[0].stem), WORDING_STEM_BYTES - 2); /* a doubled letter less */
    memset(text, '7', 100);
    wording_read(&w, text, 100);
    assert_int_equal(w.n, 1);
    assert_int_equal(strlen(w.words[0].stem), WORDING_STEM_BYTES - 1);
    wording_read(&w, "on and off", 2); /* only the given bytes */
    assert_int_equal(w.n, 1);
    wording_read(&w, "", 0);
    assert_int_equal(w.n, 0);
}

static void test_counts(void **state)
{
    static const char text[] = "Do not turn off 2 of the 3 lights";
    static struct wording w;
    (void)state;
    wording_read(&w, text, strlen(text));
    assert_int_equal(wording_count(&w, WORDING_NUMBER), 2);
    assert_int_equal(wording_count(&w, WORDING_NEGATION), 1);
    assert_int_equal(wording_count(&w, WORDING_OWNER), 0);
    assert_true(wording_has(&w, WORDING_NUMBER, "3"));
    assert_false(wording_has(&w, WORDING_NUMBER, "4"));
    assert_false(wording_has(&w, WORDING_PLAIN, "3"));
    assert_true(wording_has(&w, WORDING_PARTICLE, "off"));
}

/* Whatever the word: a stem is not longer, a stem of a stem is itself for plain plurals, and all
 * words of one meaning have one representative, which represents itself. */
static void test_synonyms(void **state)
{
    static const char *const groups[][4] = {{"turn", "switch", "put", "flip"},
                                            {"begin", "start", "commence", "launch"},
                                            {"remove", "delete", "erase", "uninstall"},
                                            {"city", "town", "city", "town"},
                                            {"recipe", "directions", "recipe", "recipe"},
                                            {"dish", "meal", "dishes", "meals"}};
    (void)state;
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        char first[WORDING_STEM_BYTES], word[WORDING_STEM_BYTES];
        snprintf(first, sizeof(first), "%s", groups[i][0]);
        wording_stem(first);
        for (size_t k = 0; k < 4; k++) {
            snprintf(word, sizeof(word), "%s", groups[i][k]);
            wording_stem(word);
            assert_string_equal(wording_same(word), first);
        }
        assert_string_equal(wording_same(first), first);
    }
    assert_string_equal(wording_same("zebra"), "zebra");
    assert_string_equal(wording_same(""), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_synonyms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

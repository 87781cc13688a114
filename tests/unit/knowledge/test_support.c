/* test_support.c - answers against passages: numbers, names, negations, words, vectors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "knowledge/support.h"

static const char *const passages[] = {
    "The pump runs hot when the coolant is low. Refill the coolant to the upper mark. The limit is "
    "85 degrees.",
    "Do not open the valve while the motor is running. The warranty from Acme ends after 24 "
    "months."};

static void test_verdicts(void **state)
{
    static const struct {
        const char *answer;
        enum support_verdict verdict;
        enum support_reason reason; /* of the last sentence */
    } cases[] = {
        {"The pump runs hot when the coolant is low [1].", SUPPORT_TRUE, SUPPORT_FINE},
        {"It runs hot if coolant is low. The limit is 85 degrees. [1]", SUPPORT_TRUE, SUPPORT_FINE},
        {"The limit is eighty-five degrees.", SUPPORT_FALSE, SUPPORT_NUMBER},
        {"The limit is 95 degrees.", SUPPORT_FALSE, SUPPORT_NUMBER},
        {"The warranty from Acme ends after 24 months.", SUPPORT_TRUE, SUPPORT_FINE},
        {"The warranty from Bolt ends after 24 months.", SUPPORT_FALSE, SUPPORT_NAME},
        {"Open the valve while the motor is running.", SUPPORT_FALSE, SUPPORT_NEGATED},
        {"Don't open the valve while the motor runs.", SUPPORT_TRUE, SUPPORT_FINE},
        {"Bananas grow in warm countries.", SUPPORT_FALSE, SUPPORT_UNRELATED},
        {"The pump runs hot when the coolant is low. It costs 300 dollars.", SUPPORT_PARTLY,
         SUPPORT_NUMBER},
        {"", SUPPORT_FALSE, SUPPORT_FINE},
        {"[1] [2]", SUPPORT_FALSE, SUPPORT_FINE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct support s;
        support_split(&s, cases[i].answer, strlen(cases[i].answer));
        support_judge(&s, cases[i].answer, passages, 2, NULL);
        enum support_reason last = s.n ? s.sentences[s.n - 1].reason : SUPPORT_FINE;
        if (s.verdict != cases[i].verdict || last != cases[i].reason)
            fail_msg("'%s': %s, %s", cases[i].answer, support_verdict_name(s.verdict),
                     support_reason_text(last));
    }
}

/* A line of a table of contents is no support, neither copied nor without its dots. */
static void test_contents(void **state)
{
    static const char *const book[] = {"2.2 Installing the driver . . . . . . . . 13\n"
                                       "2.3 Pump settings . . . . . . . . . . 14\n"
                                       "The valve opens at 5 bar."};
    static const struct {
        const char *answer;
        enum support_verdict verdict;
    } cases[] = {{"2.3 Pump settings . . . . . . . . . . 14", SUPPORT_FALSE},
                 {"2.3 Pump settings are on page 14.", SUPPORT_FALSE},
                 {"Installing the driver", SUPPORT_FALSE},
                 {"The valve opens at 5 bar.", SUPPORT_TRUE}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct support s;
        support_split(&s, cases[i].answer, strlen(cases[i].answer));
        support_judge(&s, cases[i].answer, book, 1, NULL);
        if (s.verdict != cases[i].verdict)
            fail_msg("'%s': %s", cases[i].answer, support_verdict_name(s.verdict));
    }
    /* what a passage without such lines would support */
    static const char *const dotted[] = {"The valve opens at 5 bar . . . . . 14"};
    struct support s;
    support_split(&s, dotted[0], strlen(dotted[0]));
    support_judge(&s, dotted[0], &book[0], 1, NULL);
    assert_int_equal(s.verdict, SUPPORT_FALSE);
}

/* A number or a name in one sentence does not belong to the next one. */
static void test_neighbours_are_not_mixed(void **state)
{
    static const char *const faults[] = {
        "E1 means that the sensor of the tank is broken. E3 means that the filter is blocked. The "
        "tank holds 270 litres and weighs 98 kilograms."};
    static const struct {
        const char *answer;
        enum support_verdict verdict;
    } cases[] = {{"E1 means that the sensor of the tank is broken.", SUPPORT_TRUE},
                 {"The fault E3 means that the sensor of the tank is broken.", SUPPORT_FALSE},
                 {"The fault E3 means that the filter is blocked.", SUPPORT_TRUE},
                 {"The tank weighs 98 kilograms and holds 270 litres.", SUPPORT_TRUE}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct support s;
        support_split(&s, cases[i].answer, strlen(cases[i].answer));
        support_judge(&s, cases[i].answer, faults, 1, NULL);
        if (s.verdict != cases[i].verdict)
            fail_msg("'%s': %s", cases[i].answer, support_verdict_name(s.verdict));
    }
}

/* Codes must match exactly: a similar one names something else. */
static void test_codes(void **state)
{
    static const char *const drivers[] = {
        "The driver bcmxcp_usb supports units of Powerware, blazer_usb those with the protocol Q1. "
        "Build it --with-user and 20 kg."};
    static const struct {
        const char *answer;
        enum support_verdict verdict;
    } cases[] = {{"The driver bcmxcp_usb supports units of Powerware.", SUPPORT_TRUE},
                 {"The driver bcm_usb supports units of Powerware.", SUPPORT_FALSE},
                 {"The driver blazer_usb has the protocol q1.", SUPPORT_TRUE},
                 {"The driver blazer_usb has the protocol Q12.", SUPPORT_FALSE},
                 {"Build it --with-user.", SUPPORT_TRUE},
                 {"Build it --with-users.", SUPPORT_FALSE},
                 {"Build it with 20kg.", SUPPORT_TRUE}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct support s;
        support_split(&s, cases[i].answer, strlen(cases[i].answer));
        support_judge(&s, cases[i].answer, drivers, 1, NULL);
        if (s.verdict != cases[i].verdict)
            fail_msg("'%s': %s", cases[i].answer, support_verdict_name(s.verdict));
    }
}

static void test_vectors_help_where_words_differ(void **state)
{
    static const char answer[] = "The pump overheats if coolant lacks.";
    const float near[] = {0.8f, 0.1f};
    struct support s;
    (void)state;
    support_split(&s, answer, strlen(answer));
    support_judge(&s, answer, passages, 2, NULL);
    assert_int_equal(s.verdict, SUPPORT_FALSE);
    support_judge(&s, answer, passages, 2, near);
    assert_int_equal(s.verdict, SUPPORT_TRUE);
    assert_int_equal(s.sentences[0].passage, 0);
}

static void test_sentences(void **state)
{
    static const char answer[] = "Use 3.5 bar [1]. Then wait! Is it e.g. done?\nYes";
    struct support s;
    (void)state;
    support_split(&s, answer, strlen(answer));
    assert_int_equal(s.n, 4);
    assert_int_equal(s.sentences[0].n, 16);
}

/* The passages must also answer the question. */
static void test_questions(void **state)
{
    static const char *const modes[] = {
        "Operating modes.\nEco mode uses the heat pump alone and heats the water to 55 degrees. "
        "Boost "
        "mode uses the heater too, and switches back to Eco after six hours. Holiday mode keeps "
        "the "
        "water at 15 degrees. Only a licensed electrician may open the front panel. The usbhid-ups "
        "driver supports newer units. The room must have at least 20 cubic metres."};
    static const struct {
        const char *question, *answer;
        bool supported;
    } cases[] = {
        {"What temperature does the water have in Eco mode?",
         "Eco mode heats the water to 55 degrees.", true},
        {"What temperature does the water have in Eco mode?", "The water is kept at 15 degrees.",
         false}, /* of another mode */
        {"Who may open the front panel?",
         "The answer is: The person who may open the front panel is a licensed electrician.", true},
        {"Who may open the front panel?", "Who may open the front panel?", false},
        {"Who may open the front panel?", "You may open the front panel.",
         false}, /* carries no information */
        {"May I open the front panel?", "Only a licensed electrician may open the front panel.",
         true},
        {"Which colours can I buy?", "The room must have at least 20 cubic metres.", false},
        {"Which driver supports newer units?", "The usbhid-ups driver supports newer units.", true},
        {"Which driver supports newer units?", "The usbhid driver-ups supports newer units.",
         false},
        {"Which driver supports newer units?",
         "The driver ups the driver ups the driver ups supports newer units.", false},
        {"Which driver supports newer units?",
         "The usbhid-ups driver supports newer units. The usbhid-ups driver supports newer units.",
         false},
        {"", "The room must have at least 20 cubic metres.", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct support s;
        support_split(&s, cases[i].answer, strlen(cases[i].answer));
        support_judge(&s, cases[i].answer, modes, 1, NULL);
        if (cases[i].question[0])
            support_answers(&s, cases[i].answer, cases[i].question, strlen(cases[i].question),
                            modes);
        if ((s.verdict == SUPPORT_TRUE) != cases[i].supported)
            fail_msg("'%s' '%s': %s, %s", cases[i].question, cases[i].answer,
                     support_verdict_name(s.verdict),
                     support_reason_text(s.sentences[s.n - 1].reason));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_neighbours_are_not_mixed),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_vectors_help_where_words_differ),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* fuzz_home_table.c - any bytes as a table of the home flow.  A table that is accepted is also
 * used: plans of many kinds for a text. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "apps/home/read/read_acts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct home_table *t)
{
    static const char text[] = "Bitte turn 3 on, and the twenty one minutes in 5 to 7 pm at 19 %";
    static const char *const plans[] = {"on unknown w2 w2 in w6 w8",
                                        "set unknown w2 w2 temperature to_value w14 w15",
                                        "timer set_one dur w6 w8",
                                        "timer cancel_one",
                                        "add item w1 w2 item w3 w3",
                                        "ask all light is_on",
                                        "other help",
                                        "play what w1 w3 at w10 w12",
                                        "none negated"};
    static const struct read_lines_state none;
    static const struct home_here nowhere;
    struct tm now = {.tm_mday = 15, .tm_mon = 10, .tm_year = 126};
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct arena a;
        struct home_draft draft = {0};
        struct read_lines lines;
        struct read_plan plan;
        struct home_draft_context *contexts;
        arena_init(&a, 1 << 22);
        if (!read_plan_of(&plan, plans[i]))
            abort();
        struct read_work w = {.a = &a,
                              .t = t,
                              .here = &nowhere,
                              .now = &now,
                              .lines = &lines,
                              .state = &none,
                              .text = text,
                              .p = 1.0f,
                              .draft = &draft};
        if (read_lines_choose(&lines, &a, t, NULL, &none, text) == 0)
            read_acts(&w, &plan);
        (void)home_draft_contexts(&a, &draft, 3, &contexts);
        arena_fini(&a);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct home_table *t;
    struct err e = {0};
    if (home_table_parse(&t, (const char *)data, size, &e) == 0) {
        use(t);
        home_table_close(t);
    } else if (t || e.code == 0 || !e.msg[0]) {
        abort(); /* every refusal says why */
    }
    return 0;
}

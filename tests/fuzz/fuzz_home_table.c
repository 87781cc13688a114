/* fuzz_home_table.c - any bytes as a table of the home flow.  A table that is accepted is also
 * used: each of its actions on a text, with an entity of each of its slots. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "apps/home/home_clauses.h"
#include "apps/home/home_rules.h"
#include "apps/home/table/home_words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct home_table *t)
{
    static const char text[] = "Bitte turn 3 on, and the twenty one minutes in 5 to 7 pm at 19 %";
    struct home_entity entities[16];
    struct tm now = {.tm_mday = 15, .tm_mon = 10, .tm_year = 126};
    for (uint32_t i = 0; i < t->n_actions && i < 32; i++) {
        struct arena a;
        struct home_draft draft = {0};
        const char **list;
        struct home_draft_context *contexts;
        arena_init(&a, 1 << 22);
        uint32_t n = home_clauses_split(&a, t, text, &list);
        struct home_clause c = {.text = n ? list[0] : text,
                                .intent = t->action[i].name,
                                .intent_p = 1,
                                .speech_p = 1,
                                .flow = "act",
                                .entities = entities};
        struct home_words w = home_words_split(&a, c.text);
        for (uint32_t k = 0; w.n > 0 && k < 16 && t->n_slots > 0; k++)
            entities[c.n_entities++] =
                (struct home_entity){t->slot[k % t->n_slots].name, k % w.n, k % w.n + 1};
        (void)home_rules_decide(&a, t, &draft, &c, NULL, NULL, &now);
        if (a.rc == 0 && (draft.n_lines == 0 || home_draft_contexts(&a, &draft, 3, &contexts) == 0))
            abort();
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

/* fuzz_ask.c - the home flow behind its model, with the table and the demo home of the pack: any
 * text with any plan, line by line, and any text as a value. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "apps/home/home_truth.h"
#include "apps/home/home_values.h"
#include "apps/home/read/read_acts.h"
#include "apps/home/read/read_cover.h"
#include "apps/home/site/home_file_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct home_table *table; /* read once */
static struct home_file *file;

static void use_plan(struct arena *a, const char *text, const char *written)
{
    static const struct read_lines_state state = {.last = "set @heating temperature",
                                                  .pending = "ask_value"};
    const struct home_here here = {.file = file};
    struct tm now = {.tm_mday = 15, .tm_mon = 10, .tm_year = 126};
    struct home_draft draft = {0};
    struct home_draft_context *contexts;
    struct read_lines lines;
    struct read_plan plan;
    if (read_lines_choose(&lines, a, table, file, &state, text) < 0 ||
        !read_plan_of(&plan, written))
        return;
    struct read_work w = {.a = a,
                          .t = table,
                          .here = &here,
                          .now = &now,
                          .lines = &lines,
                          .state = &state,
                          .kept = "at 7 pm\n",
                          .text = text,
                          .p = 1.0f,
                          .draft = &draft};
    (void)read_cover_all(a, &lines, &plan);
    read_acts(&w, &plan);
    for (uint32_t i = 0; i < draft.n_actions; i++)
        if (!ask_plan_text_of(draft.actions[i], "result"))
            __builtin_trap(); /* each action says what came of it */
    uint32_t n = home_draft_contexts(a, &draft, table->together, &contexts);
    for (uint32_t i = 0; i < n; i++)
        if (contexts[i].text)
            (void)home_truth_holds(a, contexts[i].text, text);
}

/* The first line is the plan, the rest the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a;
    if (size > 2000 || memchr(data, '\0', size))
        return 0;
    if (!table && (home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", NULL) < 0 ||
                   home_file_read_path(&file, table, SHOAL_TEST_DATA "/../../models/demo-home.yaml",
                                       NULL) < 0))
        __builtin_trap();
    char *plan = mem_strndup((const char *)data, size);
    if (!plan)
        return 0;
    char *text = strchr(plan, '\n');
    if (text)
        *text++ = '\0';
    arena_init(&a, 1 << 23);
    (void)home_values_amount(&a, table, plan, true, home_table_unit(table, "percent"));
    (void)home_values_duration(&a, table, plan);
    (void)home_values_clock(&a, table, plan);
    (void)home_values_date(&a, table, plan);
    if (text)
        use_plan(&a, text, plan);
    arena_fini(&a);
    mem_free(plan);
    return 0;
}

/* fuzz_home_file.c - input for a home from a user or another program: home files, registries of
 * Home Assistant, files of states.  An import yields a valid home file. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "apps/home/read/read_lines.h"
#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_import.h"
#include "apps/home/site/home_states.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The lines of a home that a text may mean are lines of it. */
static void choose_lines(const struct home_table *t, const struct home_file *f)
{
    static const struct read_lines_state none;
    struct read_lines lines;
    struct arena a;
    arena_init(&a, (size_t)8 << 20);
    const char *text =
        arena_printf(&a, "turn on the %s", f->n_things > 0 ? f->things[0].names.w[0] : "lights");
    if (read_lines_choose(&lines, &a, t, f, &none, text) == 0)
        for (uint32_t i = 0; i < lines.n_things; i++)
            if (lines.things[i].thing < f->things ||
                lines.things[i].thing >= f->things + f->n_things)
                __builtin_trap();
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct home_table *table; /* read once */
    const char *text = (const char *)data;
    struct home_file *f;
    struct home_states *s;
    struct home_import_report report;
    struct buf b;
    struct err e = {0};
    if (size > 1 << 16)
        return 0;
    if (!table && home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", NULL) < 0)
        __builtin_trap();
    if (home_file_read_text(&f, table, text, size, "fuzz", &e) == 0) {
        choose_lines(table, f);
        home_file_unref(f);
    }
    const struct home_import in = {{text, size}, {text, size}, {text, size}};
    buf_init(&b, (size_t)4 << 20);
    if (home_import_write(&in, &b, &report, &e) == 0) {
        e = (struct err){0};
        int rc = home_file_read_text(&f, table, buf_str(&b), b.len, "imported", &e);
        if (rc == SHOAL_EFORMAT && !strstr(e.msg, "used twice") && !strstr(e.msg, "more than"))
            __builtin_trap();
        home_file_unref(f);
    }
    buf_fini(&b);
    if (home_states_create(&s, NULL, NULL) == 0) {
        int rc = home_states_read(s, text, size, NULL);
        home_states_destroy(s);
        if (rc > 0)
            __builtin_trap();
    }
    return 0;
}

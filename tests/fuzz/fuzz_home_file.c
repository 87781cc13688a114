/* fuzz_home_file.c - input for a home from a user or another program: home files, registries of
 * Home Assistant, files of states.  An import yields a valid home file. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "apps/home/site/home_file_read.h"
#include "apps/home/site/home_import.h"
#include "apps/home/site/home_link.h"
#include "apps/home/site/home_states.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void link_names(const struct home_table *t, const struct home_file *f)
{
    struct arena a;
    arena_init(&a, (size_t)8 << 20);
    for (uint32_t i = 0; i < f->n_things && i < 8; i++) {
        const struct home_thing *x = &f->things[i];
        const struct home_link_query q = {.types = 1u << x->type,
                                          .text = x->names.w[0],
                                          .room = x->room ? x->room->names.w[0] : NULL};
        struct home_link l = home_link_find(&a, f, t, &q);
        if (a.rc == 0 && l.n > f->n_things)
            __builtin_trap();
    }
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
        link_names(table, f);
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

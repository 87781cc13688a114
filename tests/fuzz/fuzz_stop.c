/* fuzz_stop.c - any text that may stop something: what it stops are things of the home that rest
 * safely, each once, and the reader needs no more memory than a request has. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "apps/home/site/home_file_read.h"
#include "apps/home/stop/stop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct home_table *table; /* read once */
    static struct home_file *file;
    const struct home_focus focus = {.machine = "lathe"};
    if (!table &&
        (home_table_open(&table, SHOAL_TEST_DATA "/../../models/home.json", NULL) < 0 ||
         home_file_read_path(&file, table, SHOAL_TEST_DATA "/ask/stop/workshop.yaml", NULL) < 0))
        __builtin_trap();
    if (size > 4096 || memchr(data, '\0', size))
        return 0;
    for (int focused = 0; focused < 2; focused++) {
        struct arena a;
        struct stop s;
        arena_init(&a, (size_t)8 << 20);
        const struct stop_query q = {.t = table,
                                     .file = file,
                                     .focus = focused ? &focus : NULL,
                                     .text =
                                         arena_printf(&a, "%.*s", (int)size, (const char *)data)};
        bool stops = stop_read(&a, &q, &s);
        if (a.rc < 0 || (stops && s.what == STOP_NOTHING))
            __builtin_trap();
        for (uint32_t i = 0; stops && i < s.n_things; i++) {
            if (strcmp(s.things[i]->kind, "light") == 0)
                __builtin_trap();
            for (uint32_t k = 0; k < i; k++)
                if (s.things[k] == s.things[i])
                    __builtin_trap();
        }
        arena_fini(&a);
    }
    return 0;
}

/* fuzz_recipe.c - lists of recipes: names stay within the model, and parts add up. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "depot/source/recipe.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recipes *r = NULL;
    struct err e = {0};
    if (recipes_parse(&r, (const char *)data, size, &e) < 0) {
        if (!e.msg[0])
            abort(); /* an error must have a message */
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    for (uint32_t i = 0; i < r->n; i++) {
        if (recipes_find(r, r->v[i].name) == NULL)
            abort();
        for (uint32_t k = 0; k < r->v[i].n_files; k++) {
            const struct recipe_file *f = &r->v[i].files[k];
            uint64_t sum = 0;
            for (uint32_t p = 0; p < f->n_parts; p++) {
                if (f->parts[p].archive >= r->v[i].n_archives)
                    abort();
                sum += f->parts[p].bytes;
            }
            FUZZ_NOTE(" %s %llu", f->name, (unsigned long long)sum);
            if (sum != f->bytes || f->name[0] == '/' || strstr(f->name, ".."))
                abort();
        }
    }
    recipes_close(r);
    return 0;
}

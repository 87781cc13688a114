/* fuzz_hub_files.c - the files of a repository, as a hub lists them: what is chosen stays within
 * the model. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "depot/source/hub_files.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const tags[] = {NULL, "Q4_K_M", "a.gguf"};
    for (int i = 0; i < 3; i++) {
        struct hub_files f;
        struct arena a;
        struct err e = {0};
        arena_init(&a, (size_t)1 << 24);
        int rc = hub_files_read(&f, &a, (const char *)data, size, &e);
        if (rc == 0)
            rc = hub_files_choose(&f, tags[i], &e);
        if (rc < 0 && !e.msg[0])
            abort();
        FUZZ_NOTE("%d %s", rc, e.msg);
        for (uint32_t k = 0; rc == 0 && k < f.n; k++)
            FUZZ_NOTE(" %s", f.v[k].path);
        for (uint32_t k = 0; rc == 0 && k < f.n; k++)
            if (f.v[k].path[0] == '/' || f.v[k].path[0] == '.' || strstr(f.v[k].path, "/."))
                abort();
        arena_fini(&a);
    }
    return 0;
}

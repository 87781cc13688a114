/* fuzz_safetensors.c - any bytes as a safetensors file: every tensor must lie inside of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/safetensors.h"
#include "support/fuzz_note.h"

static volatile uint64_t sink; /* so that reads are not optimized away */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors *s = NULL;
    struct err e;
    const int rc = safetensors_parse(&s, data, size, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc < 0)
        return 0;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const struct safetensors_tensor *t = &s->tensors[i];
        if (t->data < data || t->n_bytes > (size_t)(data + size - t->data))
            abort();
        if (t->n_bytes > 0)
            sink += t->data[0] + t->data[t->n_bytes - 1];
        if (safetensors_find(s, t->name) != t)
            abort(); /* names are unique */
        FUZZ_NOTE(" %s %s %zu", t->name, safetensors_type_name(t->type), (size_t)t->n_bytes);
        sink += strlen(safetensors_type_name(t->type));
    }
    safetensors_close(s);
    return 0;
}

/* fuzz_prom_in.c - a page of metrics: every sample is within it. */
#include <stdint.h>
#include <stdlib.h>

#include "support/fuzz_note.h"
#include "wire/prom_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data, *end = p + size;
    struct prom_sample s;
    char label[8];
    while (prom_in_next(&p, end, &s)) {
        if (s.n_name == 0 || s.name < (const char *)data || s.labels + s.n_labels > end || p > end)
            abort();
        FUZZ_NOTE("%zu %zu %g", s.n_name, s.n_labels, s.value);
        if (prom_in_label(&s, "le", label, sizeof(label)))
            FUZZ_NOTE(" %s", label);
    }
    return 0;
}

/* fuzz_table.c - rows of numbers: CSV and JSON lines. */
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "eval/table.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct table t;
    struct err e;
    char *text = mem_strndup((const char *)data, size);
    volatile double sum = 0;
    const int rc = text ? table_parse(&t, text, &e) : SHOAL_ENOMEM;
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc == 0) {
        for (size_t i = 0; i < t.n_rows * t.n_cols; i++)
            FUZZ_NOTE(" %.9g", t.values[i]);
        for (size_t i = 0; i < t.n_rows * t.n_cols; i++)
            sum += t.values[i];
        for (uint32_t i = 0; i < t.n_cols; i++)
            sum += t.kinds[i] == TABLE_TIMES;
        (void)table_column(&t, "a");
        (void)sum;
        table_fini(&t);
    }
    mem_free(text);
    return 0;
}

/* fuzz_audit_line.c - lines of the audit log. */
#include <stdint.h>
#include <stdlib.h>

#include "support/fuzz_note.h"
#include "supply/audit_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct audit_line l;
    struct err e = {0};
    if (audit_line_read(&l, (const char *)data, size, &e) < 0) {
        if (!e.msg[0])
            abort(); /* an error must have a message */
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    if (l.kind >= AUDIT_KINDS || l.n_covered >= size)
        abort();
    FUZZ_NOTE("%s %llu", audit_kind_name(l.kind), (unsigned long long)l.n);
    return 0;
}

/* fuzz_doc_jsonl.c - Documents as JSON lines.  The result is clean text within its bounds
 * (doc_check.h). */
#include <stdint.h>

#include "support/doc_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 4 && memcmp(data, "%PDF", 4) == 0)
        return 0; /* would run pdftotext */
    doc_check_read(DOC_JSONL, data, size);
    return 0;
}

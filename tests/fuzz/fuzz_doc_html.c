/* fuzz_doc_html.c - HTML documents.  The result is clean text within its bounds (doc_check.h).
 */
#include <stdint.h>

#include "support/doc_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 4 && memcmp(data, "%PDF", 4) == 0)
        return 0; /* would run pdftotext */
    doc_check_read(DOC_HTML, data, size);
    return 0;
}

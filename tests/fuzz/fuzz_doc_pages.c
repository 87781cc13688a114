/* fuzz_doc_pages.c - the text of a PDF as pdftotext writes it. */
#include <stdint.h>

#include "support/doc_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    doc_check_bytes(doc_pages_read, data, size);
    return 0;
}

/* fuzz_regex.c - any bytes as a regular expression. */
#include "support/grammar_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return grammar_fuzz(SHOAL_CONSTRAINT_REGEX, data, size);
}

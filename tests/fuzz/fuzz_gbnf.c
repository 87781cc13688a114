/* fuzz_gbnf.c - any bytes as a grammar in GBNF. */
#include "support/grammar_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return grammar_fuzz(SHOAL_CONSTRAINT_GBNF, data, size);
}

/* fuzz_json_schema.c - any bytes as a JSON Schema. */
#include "support/grammar_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return grammar_fuzz(SHOAL_CONSTRAINT_SCHEMA, data, size);
}

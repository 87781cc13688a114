/* fuzz_llama2c_vocab.c - hostile tokenizer.bin: the first two bytes are the size of the vocabulary.
 */
#include <stdint.h>
#include <stdlib.h>

#include "format/convert/llama2c_vocab.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct llama2c_vocab v;
    struct err e;
    volatile char sum = 0;
    if (size < 2)
        return 0;
    if (llama2c_vocab_parse(&v, data + 2, size - 2, data[0] | (uint32_t)data[1] << 8, &e) < 0) {
        FUZZ_NOTE("%s", e.msg);
        return 0;
    }
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.types[i] < 1 || v.types[i] > 6)
            abort();
        FUZZ_NOTE(" %d ", (int)v.types[i]);
        FUZZ_NOTE_BYTES(v.pieces[i], v.piece_bytes[i]);
        for (size_t k = 0; k < v.piece_bytes[i]; k++)
            sum = (char)(sum + v.pieces[i][k]);
    }
    llama2c_vocab_fini(&v);
    return 0;
}

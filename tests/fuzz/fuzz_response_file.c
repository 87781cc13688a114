/* fuzz_response_file.c - a line of the file of stored responses; what was read is written and read
 * again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "gateway/api/openai/response_entry.h"
#include "gateway/api/openai/response_file.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct response_entry e, again;
    struct arena a;
    struct buf line;
    int64_t until;
    arena_init(&a, 1 << 20);
    buf_init(&line, 1 << 22);
    if (response_file_read(&e, &until, (const char *)data, size, &a)) {
        response_file_put(&line, &e, until);
        FUZZ_NOTE_BYTES(line.data, line.len);
        if (line.rc == 0 && a.used_bytes < 1 << 18 &&
            (!response_file_read(&again, &until, line.data, line.len - 1, &a) ||
             again.n_messages != e.n_messages || strcmp(again.json, e.json) != 0))
            abort();
    }
    buf_fini(&line);
    arena_fini(&a);
    return 0;
}

/* fuzz_chat_template.c - a template, a NUL, and a context in JSON. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "text/chat_template.h"
#include "base/utf8.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct chat_template_opts o = {.fixed_time = true,
                                         .max_steps = 20000,
                                         .max_output_bytes = 100000,
                                         .max_memory_bytes = 1u << 20};
    const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
    if (!nul)
        return 0;
    size_t n = (size_t)(nul - data);
    struct chat_template *t = NULL;
    struct err e = {0};
    struct buf out;
    buf_init(&out, 200000);
    int rc = chat_template_parse(&t, (const char *)data, n, &e);
    if (rc == 0)
        rc = chat_template_render_opts(t, &out, (const char *)nul + 1, size - n - 1, &o, &e);
    if (rc < 0 && (e.code != rc || !e.msg[0] || out.len != 0))
        abort();
    if (utf8_valid_prefix(buf_str(&out), out.len) != out.len) /* prompts are always valid text */
        abort();
    FUZZ_NOTE("%d %s", rc, e.msg);
    FUZZ_NOTE_BYTES(out.data, out.len);
    chat_template_destroy(t);
    buf_fini(&out);
    return 0;
}

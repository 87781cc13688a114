/* fuzz_go_template.c - templates of Go to Jinja; what is translated must be a template. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/chat_template.h"
#include "gateway/api/ollama/go_template.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = mem_strndup((const char *)data, size);
    struct chat_template *t = NULL;
    struct err e = {0};
    struct buf jinja;
    buf_init(&jinja, 1 << 20);
    const int read = text ? go_template_translate(&jinja, text, &e) : SHOAL_ENOMEM;
    FUZZ_NOTE("%d %s", read, e.msg);
    FUZZ_NOTE_BYTES(jinja.data, jinja.len);
    if (read == 0) {
        const int rc = chat_template_parse(&t, jinja.data, jinja.len, &e);
        if (rc < 0 && rc != SHOAL_ENOMEM && rc != SHOAL_ELIMIT)
            abort();
        chat_template_destroy(t);
    }
    buf_fini(&jinja);
    mem_free(text);
    return 0;
}

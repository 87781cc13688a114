/* fuzz_jinja.c - any bytes as a chat template, rendered with a fixed context and small limits. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "text/chat_template.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char context[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"h\\u00fc \\ud83e\\udd88\"},"
        "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],"
        "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"a\":1.5}}}]}],"
        "\"tools\":[{\"b\":1,\"a\":[1,2,null]}],\"l\":[3,1,2],\"s\":\"Hello World\","
        "\"d\":{\"b\":1,\"a\":\"x\"},\"add_generation_prompt\":true}";
    const struct chat_template_opts o = {.fixed_time = true,
                                         .max_steps = 20000,
                                         .max_output_bytes = 100000,
                                         .max_memory_bytes = 1u << 20};
    struct chat_template *t = NULL;
    struct err e = {0};
    struct buf out;
    buf_init(&out, 200000);
    int rc = chat_template_parse(&t, (const char *)data, size, &e);
    if (rc == 0)
        rc = chat_template_render_opts(t, &out, context, sizeof(context) - 1, &o, &e);
    if (rc < 0 && (e.code != rc || !e.msg[0] || out.len != 0)) /* a failure says why */
        abort();
    FUZZ_NOTE("%d %s", rc, e.msg);
    FUZZ_NOTE_BYTES(out.data, out.len);
    chat_template_destroy(t);
    buf_fini(&out);
    return 0;
}

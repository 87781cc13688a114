/* fuzz_tool_parse.c - tool calls in model output. The result does not depend on how the text is
 * split; arguments of complete calls are JSON objects; text without calls is unchanged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "flow/tools/tool_parse.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct buf all, args;
    bool whole;
    uint32_t n_begun, n_ended;
};

static void on_piece(void *ctx, const struct tool_parse_event *e)
{
    struct seen *s = ctx;
    switch (e->kind) {
    case TOOL_PARSE_TEXT:
        if (s->n_begun != s->n_ended || e->text_bytes == 0)
            abort();
        buf_put(&s->all, e->text, e->text_bytes);
        break;
    case TOOL_PARSE_BEGIN:
        if (e->index != s->n_begun || s->n_begun != s->n_ended)
            abort();
        s->n_begun++;
        buf_clear(&s->args);
        buf_printf(&s->all, "|%s(", e->text);
        break;
    case TOOL_PARSE_ARGUMENTS:
        buf_put(&s->args, e->text, e->text_bytes);
        buf_put(&s->all, e->text, e->text_bytes);
        break;
    case TOOL_PARSE_END: {
        cJSON *v = cJSON_ParseWithLength(buf_str(&s->args), s->args.len);
        if (s->whole && !cJSON_IsObject(v))
            abort();
        cJSON_Delete(v);
        s->n_ended++;
        buf_puts(&s->all, ")");
        break;
    }
    }
}

static void parse(struct seen *s, enum tool_format f, const uint8_t *text, size_t n, size_t piece,
                  bool stream)
{
    static const struct chat_tool tools[] = {{.name = "f", .description = ""},
                                             {.name = "get", .description = ""}};
    struct tool_parse p;
    *s = (struct seen){.whole = !stream};
    buf_init(&s->all, 1 << 24);
    buf_init(&s->args, 1 << 24);
    tool_parse_init(&p, f, tools, 2, 0, stream, on_piece, s);
    for (size_t at = 0; at < n; at += piece)
        tool_parse_push(&p, (const char *)text + at, n - at < piece ? n - at : piece);
    tool_parse_end(&p);
    if (p.rc != 0 || s->n_begun != s->n_ended || p.n_calls != s->n_begun)
        abort();
    tool_parse_fini(&p);
}

static void fini(struct seen *s)
{
    buf_fini(&s->all);
    buf_fini(&s->args);
}

static void same(const struct seen *a, const struct seen *b)
{
    if (a->all.len != b->all.len || memcmp(buf_str(&a->all), buf_str(&b->all), a->all.len) != 0)
        abort();
}

/* The first byte chooses the format. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole, cut, bytes, cut_stream;
    if (size == 0)
        return 0;
    enum tool_format f = (enum tool_format)(1 + data[0] % (TOOL_FORMAT_COUNT - 1));
    parse(&whole, f, data + 1, size - 1, size, false);
    parse(&cut, f, data + 1, size - 1, 3, false);
    parse(&bytes, f, data + 1, size - 1, 1, true);
    parse(&cut_stream, f, data + 1, size - 1, 5, true);
    same(&whole, &cut);
    if (whole.n_begun == 0 && whole.all.len > size - 1)
        abort();
    FUZZ_NOTE_BYTES(whole.all.data, whole.all.len);
    FUZZ_NOTE("|");
    FUZZ_NOTE_BYTES(bytes.all.data, bytes.all.len);
    fini(&whole);
    fini(&cut);
    fini(&bytes);
    fini(&cut_stream);
    return 0;
}

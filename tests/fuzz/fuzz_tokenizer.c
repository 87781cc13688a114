/* fuzz_tokenizer.c - tokenizers from hostile metadata, and any bytes through them.
 *
 * Input whose first byte is 0xff is a GGUF file.  Other input is a recipe: it always builds a file
 * that parses, so that the fuzzer gets past the reader and into the tokenizer. */
#include <stdint.h>
#include <stdlib.h>

#include "base/rd.h"
#include "support/gguf_build.h"
#include "text/tokenizer/split/tok_pretok.h"
#include "text/tokenizer/tokenizer.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

/* Every way of encoding and decoding; ids must be in the vocabulary. */
static void use(const struct tokenizer *t, const char *text, size_t n)
{
    struct tok_ids ids;
    struct err e;
    struct buf whole, streamed;
    const struct tokenizer_info *in = tokenizer_info(t);
    check(in->bos < (int32_t)in->n_vocab && in->eos < (int32_t)in->n_vocab);
    for (unsigned flags = 0; flags < 8; flags++) {
        struct tok_stream s;
        tok_ids_init(&ids, 100000);
        buf_init(&whole, (size_t)1 << 26);
        buf_init(&streamed, (size_t)1 << 26);
        check(tokenizer_encode(t, &ids, text, n, flags, &e) == 0);
        tokenizer_stream_init(&s, t, TOKENIZER_NONE, flags);
        for (size_t i = 0; i < ids.n; i++) {
            check(ids.ids[i] >= 0 && (uint32_t)ids.ids[i] < in->n_vocab);
            check((flags & 3) || tokenizer_token_type(t, ids.ids[i]) != TOKEN_TYPE_CONTROL ||
                  ids.ids[i] == in->unk);
            FUZZ_NOTE(" %d", ids.ids[i]);
            tokenizer_stream_push(&s, &streamed, ids.ids[i]);
        }
        tokenizer_stream_flush(&s, &streamed);
        tokenizer_decode(t, &whole, ids.ids, ids.n, flags);
        check(whole.len == streamed.len &&
              (whole.len == 0 || memcmp(whole.data, streamed.data, whole.len) == 0));
        FUZZ_NOTE("|");
        FUZZ_NOTE_BYTES(whole.data, whole.len);
        tok_ids_fini(&ids);
        buf_fini(&whole);
        buf_fini(&streamed);
    }
}

/* Up to max bytes, as many as the next byte says. */
static void put_text(struct buf *b, struct rd *r, size_t max)
{
    size_t n = rd_u8(r) % (max + 1);
    if (n > rd_left(r))
        n = rd_left(r);
    gb_text(b, (const char *)rd_take(r, n), n);
}

static void build(struct buf *b, struct rd *r)
{
    static const char *const models[] = {"llama", "gpt2", "gemma4", "bert"};
    const char *model = models[rd_u8(r) % 4];
    size_t n_names = 0;
    while (tok_pretok_name(n_names))
        n_names++;
    const char *pre = tok_pretok_name(rd_u8(r) % n_names);
    unsigned have = rd_u8(r), n = rd_u8(r) % 64 + 1, n_merges = rd_u8(r) % 32;
    gb_begin(b);
    gb_kv_str(b, "tokenizer.ggml.model", model);
    gb_kv_str(b, "tokenizer.ggml.pre", pre);
    gb_kv_array(b, "tokenizer.ggml.tokens", MODEL_FILE_STRING, n);
    for (unsigned i = 0; i < n; i++)
        put_text(b, r, 12);
    gb_kv_array(b, "tokenizer.ggml.scores", MODEL_FILE_F32, n);
    for (unsigned i = 0; i < n; i++)
        gb_u32(b, have & 1 ? rd_u32(r) : rd_u8(r) * 0x01010101u);
    if (have & 2) {
        gb_kv_array(b, "tokenizer.ggml.token_type", MODEL_FILE_I32, n);
        for (unsigned i = 0; i < n; i++)
            gb_u32(b, rd_u8(r) % 8);
    }
    gb_kv_array(b, "tokenizer.ggml.merges", MODEL_FILE_STRING, n_merges);
    for (unsigned i = 0; i < n_merges; i++)
        put_text(b, r, 12);
    if (have & 4)
        gb_kv_u32(b, "tokenizer.ggml.bos_token_id", rd_u8(r));
    if (have & 8)
        gb_kv_u32(b, "tokenizer.ggml.eos_token_id", rd_u8(r));
    if (have & 16)
        gb_kv_u32(b, "tokenizer.ggml.unknown_token_id", rd_u8(r));
    if (have & 32)
        gb_kv_bool(b, "tokenizer.ggml.add_space_prefix", rd_u8(r) & 1);
    if (have & 64)
        gb_kv_str(b, "general.name", "phi-3");
    if (have & 128)
        gb_kv_bool(b, "tokenizer.ggml.add_eos_token", true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_file *g = NULL;
    struct tokenizer *t = NULL;
    struct err e;
    struct buf b;
    struct rd r = rd_make(data, size);
    if (size > 0 && data[0] == 0xff) {
        if (gguf_parse(&g, data + 1, size - 1, &e) < 0)
            return 0;
        if (tokenizer_create(&t, g, &e) == 0)
            use(t, (const char *)data, size < 2000 ? size : 2000);
    } else {
        build(&b, &r);
        check(b.rc == 0 && gguf_parse(&g, b.data, b.len, &e) == 0);
        const int rc = tokenizer_create(&t, g, &e);
        FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
        if (rc == 0)
            use(t, (const char *)r.p, rd_left(&r) < 4000 ? rd_left(&r) : 4000);
        buf_fini(&b);
    }
    model_file_close(g);
    tokenizer_destroy(t);
    return 0;
}

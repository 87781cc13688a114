/* fuzz_tok_hf.c - tokenizers from hostile documents, and any bytes through them.
 *
 * The first byte says what the input is: 0 tokenizer.json, 1 spiece.model, 2 vocab.txt, 3
 * vocab.json with merges.txt behind a NUL, 4 vocab.json with source.spm behind a NUL.  The text
 * follows the last byte 0xfe; without one the whole input is the text too. */
#include <stdint.h>
#include <stdlib.h>

#include "text/tokenizer/tokenizer.h"
#include "support/gguf_build.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

/* Every way of encoding and decoding; ids must be in the vocabulary, ranges in the text. */
static void use(const struct tokenizer *t, const char *text, size_t n)
{
    uint32_t n_vocab = tokenizer_info(t)->n_vocab;
    struct tok_encoding x;
    struct tok_ids ids;
    struct buf out;
    struct err e;
    tokenizer_encoding_init(&x);
    tok_ids_init(&ids, 100000);
    buf_init(&out, (size_t)1 << 26);
    for (unsigned flags = 0; flags < 4; flags++) {
        ids.n = 0;
        int rc = tokenizer_encode(t, &ids, text, n, flags, &e);
        int rc2 = tokenizer_encode_pair(t, &x, text, n, NULL, 0, 0, flags, &e);
        check(rc == 0 ? rc2 == 0 && x.n == ids.n : true);
        for (size_t i = 0; rc2 == 0 && i < x.n; i++) {
            check(x.ids[i] >= 0 && (uint32_t)x.ids[i] < n_vocab);
            check(rc < 0 || x.ids[i] == ids.ids[i]);
            check(x.start[i] <= x.end[i] && x.end[i] <= n);
            FUZZ_NOTE(" %d@%u-%u", x.ids[i], (unsigned)x.start[i], (unsigned)x.end[i]);
        }
        if (rc2 == 0)
            tokenizer_decode(t, &out, x.ids, x.n, flags & 1 ? TOKENIZER_RENDER_SPECIAL : 0);
        FUZZ_NOTE("|");
        FUZZ_NOTE_BYTES(out.data, out.len);
        buf_clear(&out);
        rc2 = tokenizer_encode_pair(t, &x, text, n / 2, text + n / 2, n - n / 2, 5,
                                    flags | (n & 1 ? TOKENIZER_CUT_SECOND : 0), &e);
        for (size_t i = 0; rc2 == 0 && i < x.n; i++)
            check(x.end[i] <= n);
        for (size_t i = 0; rc2 == 0 && i < x.n; i++)
            FUZZ_NOTE("/%d", x.ids[i]);
    }
    tokenizer_encoding_fini(&x);
    tok_ids_fini(&ids);
    buf_fini(&out);
}

static void put(struct buf *b, const char *key, const uint8_t *p, size_t n)
{
    gb_key(b, key, MODEL_FILE_STRING);
    gb_text(b, (const char *)p, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tokenizer *t = NULL;
    struct model_file *g = NULL;
    struct buf b;
    struct err e;
    if (size < 2)
        return 0;
    const uint8_t *doc = data + 1, *mark = memrchr(doc, 0xfe, size - 1), *nul;
    size_t n = mark ? (size_t)(mark - doc) : size - 1, n_text = mark ? size - n - 2 : size - 1;
    const char *text = (const char *)(mark ? mark + 1 : doc);
    gb_begin(&b);
    gb_kv_str(
        &b, "tokenizer.huggingface.config",
        "{\"eos_token\":\"</s>\",\"tokenizer_class\":\"T5Tokenizer\",\"extra_ids\":3,"
        "\"do_lower_case\":true,\"chat_template\":[{\"name\":\"default\",\"template\":\"x\"}]}");
    gb_kv_str(&b, "huggingface.generation_config", "{\"eos_token_id\":[1,2,99999]}");
    switch (data[0] == 4 ? 4 : data[0] & 3) {
    case 0:
        put(&b, "tokenizer.huggingface.json", doc, n);
        break;
    case 1:
        gb_kv_array(&b, "tokenizer.huggingface.spiece", MODEL_FILE_U8, n);
        buf_put(&b, doc, n);
        break;
    case 2:
        put(&b, "tokenizer.huggingface.vocab_txt", doc, n);
        break;
    case 4:
        nul = memchr(doc, 0, n);
        put(&b, "tokenizer.huggingface.vocab_json", doc, nul ? (size_t)(nul - doc) : n);
        nul = nul ? nul + 1 : doc;
        gb_kv_array(&b, "tokenizer.huggingface.source_spm", MODEL_FILE_U8, n - (size_t)(nul - doc));
        buf_put(&b, nul, n - (size_t)(nul - doc));
        break;
    default:
        nul = memchr(doc, 0, n);
        put(&b, "tokenizer.huggingface.vocab_json", doc, nul ? (size_t)(nul - doc) : n);
        put(&b, "tokenizer.huggingface.merges_txt", nul ? nul + 1 : doc,
            nul ? n - (size_t)(nul - doc) - 1 : 0);
    }
    check(b.rc == 0 && gguf_parse(&g, b.data, b.len, &e) == 0);
    const int rc = tokenizer_create(&t, g, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : "");
    if (rc == 0)
        use(t, text, n_text < 4000 ? n_text : 4000);
    tokenizer_destroy(t);
    model_file_close(g);
    buf_fini(&b);
    return 0;
}

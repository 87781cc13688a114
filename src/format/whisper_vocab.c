/* whisper_vocab.c - see whisper_vocab.h. */
#include "format/whisper_vocab.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "format/model_file.h"
#include "format/token_type.h"

#define MAX_PIECE 256u
#define MAX_BYTES ((size_t)64 << 20)
#define STAMPS 1501u /* <|0.00|> to <|30.00|> */
#define ENGLISH_VOCAB 51864u

/* In the order of their tokens; the last one is only in the third generation. */
static const char languages[] =
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th "
    "ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr "
    "pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt "
    "haw ln ha ba jw su yue";

struct writer {
    struct strmap ids; /* bytes of a token to its number */
    struct buf text;   /* of all strings */
    struct str *list;  /* [n]; until the end p is an offset */
    size_t n;
    const struct str *tokens;
};

/* ---- strings ---- */

static void begin(struct writer *w)
{
    w->list[w->n] = (struct str){.n = w->text.len};
}

static void end(struct writer *w)
{
    w->list[w->n].n = w->text.len - w->list[w->n].n;
    w->n++;
}

/* Gives the list to the model and begins another one. */
static void put_list(struct writer *w, struct model_file *m, const char *key)
{
    const char *at = buf_str(&w->text);
    for (size_t i = 0; i < w->n; i++) {
        w->list[i].p = at;
        at += w->list[i].n;
    }
    model_file_put_strings(m, key, w->list, w->n);
    buf_clear(&w->text);
    w->n = 0;
}

/* GPT-2's alphabet: printable bytes are themselves, the others the characters from U+0100 on. */
static void put_spelled(struct writer *w, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        const uint32_t b = (uint8_t)s.p[i];
        uint32_t c = b;
        if (b <= 32)
            c = 256 + b;
        else if (b >= 127 && b <= 160)
            c = 256 + 33 + b - 127;
        else if (b == 173)
            c = 256 + 67;
        if (c < 128) {
            buf_putc(&w->text, (char)c);
        } else {
            buf_putc(&w->text, (char)(0xc0 | c >> 6));
            buf_putc(&w->text, (char)(0x80 | (c & 0x3f)));
        }
    }
}

/* ---- merges ---- */

/* The number of the token that two neighbours make, if it comes before `below`; or else `below`. */
static uint32_t rank(const struct writer *w, struct str text, const uint16_t *cut, uint32_t part,
                     uint32_t below)
{
    uint32_t id = 0;
    const bool found = strmap_get(&w->ids, text.p + cut[part], cut[part + 2] - cut[part], &id);
    return found && id < below ? id : below;
}

/* Where the two parts meet that became token `id`: those that remain when everything else that was
 * learned before it is merged; 0: it is not made of two. */
static uint16_t seam(const struct writer *w, uint32_t id)
{
    const struct str text = w->tokens[id];
    uint16_t cut[MAX_PIECE + 1];
    uint32_t n = (uint32_t)text.n; /* parts */
    for (uint32_t i = 0; i <= n; i++)
        cut[i] = (uint16_t)i;
    while (n > 2) {
        uint32_t best = id, at = 0;
        for (uint32_t i = 0; i + 1 < n; i++) {
            const uint32_t r = rank(w, text, cut, i, best);
            at = r < best ? i : at;
            best = r;
        }
        if (best == id)
            return 0;
        memmove(cut + at + 1, cut + at + 2, (n - at - 1) * sizeof(*cut));
        n--;
    }
    return n == 2 ? cut[1] : 0;
}

static void put_merges(struct writer *w, struct model_file *m, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct str t = w->tokens[i];
        const uint16_t at = t.n > 1 && t.n <= MAX_PIECE ? seam(w, i) : 0;
        if (at == 0)
            continue;
        begin(w);
        put_spelled(w, (struct str){t.p, at});
        buf_putc(&w->text, ' ');
        put_spelled(w, (struct str){t.p + at, t.n - at});
        end(w);
    }
    put_list(w, m, "tokenizer.ggml.merges");
}

/* ---- tokens ---- */

static void put_control(struct writer *w, const char *name, size_t n)
{
    begin(w);
    buf_puts(&w->text, "<|");
    buf_put(&w->text, name, n);
    buf_puts(&w->text, "|>");
    end(w);
}

static void put_controls(struct writer *w, uint32_t n_languages)
{
    static const char *const names[] = {"translate",   "transcribe", "startoflm",
                                        "startofprev", "nospeech",   "notimestamps"};
    const char *at = languages;
    put_control(w, "endoftext", 9);
    put_control(w, "startoftranscript", 17);
    for (uint32_t i = 0; i < n_languages; i++) {
        const size_t n = strcspn(at, " ");
        put_control(w, at, n);
        at += n + (at[n] == ' ');
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        put_control(w, names[i], strlen(names[i]));
    for (uint32_t i = 0; i < STAMPS; i++) {
        char name[16];
        put_control(w, name, (size_t)snprintf(name, sizeof(name), "%u.%02u", i / 50, i % 50 * 2));
    }
}

static void put_settings(struct model_file *m, uint32_t n, uint32_t n_vocab, int32_t *types)
{
    for (uint32_t i = 0; i < n_vocab; i++)
        types[i] = i < n ? TOKEN_TYPE_NORMAL : TOKEN_TYPE_CONTROL;
    model_file_put_array(m, "tokenizer.ggml.token_type", MODEL_FILE_I32, types, n_vocab);
    model_file_put_str(m, "tokenizer.ggml.model", "gpt2", 4);
    model_file_put_str(m, "tokenizer.ggml.pre", "gpt-2", 5);
    model_file_put_u32(m, "tokenizer.ggml.bos_token_id", n);
    model_file_put_u32(m, "tokenizer.ggml.eos_token_id", n);
    model_file_put_bool(m, "tokenizer.ggml.add_bos_token", false);
}

static int put_all(struct writer *w, struct model_file *m, uint32_t n, uint32_t n_vocab,
                   struct err *e)
{
    int32_t *types = mem_zalloc_n(n_vocab, sizeof(*types));
    int rc = types ? 0 : SHOAL_ENOMEM;
    for (uint32_t i = 0; rc >= 0 && i < n; i++)
        rc = strmap_put(&w->ids, w->tokens[i].p, w->tokens[i].n, i);
    if (rc >= 0) {
        for (uint32_t i = 0; i < n; i++) {
            begin(w);
            put_spelled(w, w->tokens[i]);
            end(w);
        }
        put_controls(w, n_vocab - n - 2 - 6 - STAMPS);
        put_list(w, m, "tokenizer.ggml.tokens");
        put_merges(w, m, n);
        put_settings(m, n, n_vocab, types);
        rc = w->text.rc;
    }
    mem_free(types);
    return rc < 0 ? err_set(e, rc, "out of memory for a vocabulary of %u tokens", n_vocab) : 0;
}

int whisper_vocab_put(struct model_file *m, const struct str *tokens, uint32_t n, uint32_t n_vocab,
                      uint32_t *start, struct err *e)
{
    const uint32_t n_languages = n_vocab > ENGLISH_VOCAB + 1 ? 100 : 99;
    if (n_vocab < 2 + n_languages + 6 + STAMPS || n_vocab - (2 + n_languages + 6 + STAMPS) > n)
        return err_set(e, SHOAL_EFORMAT, "%u tokens of %u are not a vocabulary of Whisper", n,
                       n_vocab);
    n = n_vocab - (2 + n_languages + 6 + STAMPS); /* some files list the first control token */
    struct writer w = {.tokens = tokens, .list = mem_zalloc_n(n_vocab, sizeof(*w.list))};
    buf_init(&w.text, MAX_BYTES);
    int rc = w.list ? strmap_init(&w.ids, n) : SHOAL_ENOMEM;
    rc = rc < 0 ? err_set(e, rc, "out of memory for a vocabulary of %u tokens", n_vocab)
                : put_all(&w, m, n, n_vocab, e);
    *start = n + 1;
    strmap_fini(&w.ids);
    buf_fini(&w.text);
    mem_free(w.list);
    return rc;
}

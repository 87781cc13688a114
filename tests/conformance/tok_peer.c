/* tok_peer.c - holds our tokenizers against libllama's on random text; a program to run by hand.
 *
 * usage: tok_peer [--n COUNT] [--seed N] [--show K] [--text FILE] [--pre NAMES|all] LIBS
 * FILE.gguf...
 *
 * For each file, COUNT texts of every kind (see gen_text) are encoded by both, with and without
 * parsing of special tokens and with the added ones, and the share of equal results is printed, as
 * well as differences of pieces and of the end-of-generation set, and the speed of both.
 * --pre writes a copy of the first file for each named pre-tokenizer and compares these instead.
 * Built and started by tests/conformance/compare-tokenizers, which brings libllama from npm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "format/gguf.h"
#include "format/gguf_write.h"
#include "text/tokenizer/split/tok_pretok.h"
#include "text/tokenizer/tokenizer.h"
#include "tok_peer.h"

static uint64_t rng;
static int n_per_kind = 200, n_show = 3;
static const char *text_path; /* for the speed measurement */

static uint32_t rnd(uint32_t n)
{
    rng += 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash_mix(rng) >> 33) % n;
}

static void put_cp(struct buf *b, uint32_t cp)
{
    char u[4];
    if (cp >= 0xd800 && cp < 0xe000)
        cp = 'x';
    buf_put(b, u, utf8_encode(u, cp));
}

enum kind { K_ASCII, K_SPACES, K_SCRIPTS, K_EMOJI, K_CODE, K_ANY, K_SPECIAL, K_INVALID, N_KINDS };
static const char *const kind_name[] = {"ascii", "white space",    "scripts", "emoji",
                                        "code",  "any code point", "special", "invalid UTF-8"};

static void gen_ascii(struct buf *b)
{
    static const char *const words[] = {
        "the", "Hello", "it's",  "WE'LL",   "don't", "I'm",  "you'Re", "they'vE", "he'D",  "x",
        "of",  "over",  "quick", "BROWN",   "jumps", "LaZy", "3.14",   "1234567", "42",    "007",
        "'s",  "'ll",   "a1b2",  "foo_bar", "e.g.",  "--",   "...",    "!?",      "$5.00", "100%",
    };
    uint32_t k = rnd(10);
    if (k < 6)
        buf_puts(b, words[rnd(sizeof(words) / sizeof(words[0]))]);
    else
        for (uint32_t n = rnd(9) + 1; n > 0; n--)
            buf_putc(b, (char)(33 + rnd(94)));
    if (rnd(4))
        buf_putc(b, ' ');
}

static void gen_spaces(struct buf *b)
{
    static const uint32_t space[] = {' ',  '\n',   '\t',   '\r',   '\v',   '\f',  0x85,
                                     0xa0, 0x1680, 0x2003, 0x2028, 0x202f, 0x3000};
    uint32_t cp = rnd(3) ? space[rnd(4)] : space[rnd(13)];
    for (uint32_t n = rnd(6) ? rnd(4) + 1 : rnd(40); n > 0; n--)
        put_cp(b, rnd(5) ? cp : space[rnd(3)]);
    if (rnd(2))
        gen_ascii(b);
}

static void gen_script(struct buf *b)
{
    static const struct {
        uint32_t lo, hi;
    } scripts[] = {
        {0xc0, 0x17f},      {0x370, 0x3ff},     {0x400, 0x4ff},   {0x531, 0x586},
        {0x5d0, 0x5ea},     {0x620, 0x64a},     {0x660, 0x669},   {0x900, 0x97f},
        {0x980, 0x9fb},     {0xb80, 0xbfa},     {0xe01, 0xe5b},   {0x1000, 0x109f},
        {0x10a0, 0x10ff},   {0x1100, 0x11ff},   {0x1780, 0x17f9}, {0x1e00, 0x1eff},
        {0x3041, 0x3096},   {0x30a1, 0x30ff},   {0x4e00, 0x9fa5}, {0xac00, 0xd7a3},
        {0x300, 0x36f},     {0x2000, 0x206f},   {0x20a0, 0x20bf}, {0x2150, 0x218b},
        {0x2200, 0x22ff},   {0x3000, 0x303f},   {0xff01, 0xff5e}, {0x1d400, 0x1d7ff},
        {0x20000, 0x2a6d6}, {0x10400, 0x1044f}, {0x1c5, 0x1cc},   {0x2b0, 0x2ff},
    };
    uint32_t s = rnd(sizeof(scripts) / sizeof(scripts[0]));
    for (uint32_t n = rnd(12) + 1; n > 0; n--)
        put_cp(b, scripts[s].lo + rnd(scripts[s].hi - scripts[s].lo + 1));
    if (rnd(2))
        buf_putc(b, ' ');
    else if (rnd(3) == 0)
        gen_ascii(b);
}

static void gen_emoji(struct buf *b)
{
    put_cp(b, rnd(2) ? 0x1f300 + rnd(0x300) : 0x1f900 + rnd(0x100));
    if (rnd(3) == 0)
        put_cp(b, 0xfe0f);
    if (rnd(3) == 0)
        put_cp(b, 0x1f3fb + rnd(5));
    if (rnd(3) == 0)
        put_cp(b, 0x200d);
    if (rnd(4) == 0)
        put_cp(b, 0x1f1e6 + rnd(26));
    if (rnd(2))
        gen_ascii(b);
}

static void gen_code(struct buf *b)
{
    static const char *const parts[] = {
        "int main(void)\n{\n",
        "    return 0;\n",
        "}\n\n\n",
        "\t\tif (x != y) ",
        "// note\n",
        "/* a */",
        "def f(self):\n",
        "        pass\n",
        "<div class=\"a\">",
        "</s>",
        "https://a.b/c?d=e&f",
        "{\"k\": [1, 2]}",
        "x += 0x1F;",
        "\r\n\r\n",
        "'''",
        "#include <a.h>\n",
        "    ",
        "!=\n\n",
        "a->b[c]",
        "\\n\\t",
    };
    buf_puts(b, parts[rnd(sizeof(parts) / sizeof(parts[0]))]);
}

static void gen_any(struct buf *b)
{
    uint32_t k = rnd(8);
    put_cp(b, k < 3 ? rnd(0x110000) : k < 5 ? rnd(0x3000) : k < 6 ? rnd(0x10000) : rnd(0x80));
}

static void gen_special(struct buf *b, const struct tokenizer *t)
{
    uint32_t n = tokenizer_info(t)->n_vocab;
    for (int tries = 0; tries < 2000; tries++) {
        int32_t id = (int32_t)(tries & 1 ? rnd(n)
                               : rnd(2)  ? rnd(n < 400 ? n : 400)
                                         : n - 1 - rnd(n < 400 ? n : 400));
        enum token_type type = tokenizer_token_type(t, id);
        if (type == TOKEN_TYPE_NORMAL || type == TOKEN_TYPE_BYTE)
            continue;
        struct str w = tokenizer_piece(t, id, TOKENIZER_RENDER_SPECIAL);
        buf_put(b, w.p, rnd(12) ? w.n : rnd((uint32_t)w.n + 1));
        break;
    }
    if (rnd(2))
        gen_ascii(b);
    else if (rnd(3) == 0)
        gen_spaces(b);
    else if (rnd(8) == 0)
        buf_puts(b, "<0x41>");
}

static void gen_invalid(struct buf *b)
{
    if (rnd(3) == 0)
        gen_script(b);
    else if (rnd(2))
        gen_ascii(b);
    for (uint32_t n = rnd(4); n > 0; n--)
        buf_putc(b, (char)(128 + rnd(0x74))); /* libllama aborts above U+10FFFF */
}

static void gen_text(struct buf *b, enum kind kind, const struct tokenizer *t)
{
    buf_clear(b);
    for (uint32_t n = rnd(12) + 1; n > 0; n--) {
        switch (kind) {
        case K_ASCII:
            gen_ascii(b);
            break;
        case K_SPACES:
            gen_spaces(b);
            break;
        case K_SCRIPTS:
            gen_script(b);
            break;
        case K_EMOJI:
            gen_emoji(b);
            break;
        case K_CODE:
            gen_code(b);
            break;
        case K_ANY:
            gen_any(b);
            break;
        case K_SPECIAL:
            gen_special(b, t);
            break;
        default:
            gen_invalid(b);
            break;
        }
    }
}

static void show_text(const char *p, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '\n')
            printf("\\n");
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c < 32 || c == 127)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void show_ids(const char *who, const struct tokenizer *t, const int32_t *ids, size_t n)
{
    printf("      %s:", who);
    for (size_t i = 0; i < n && i < 60; i++) {
        struct str w = tokenizer_piece(t, ids[i], TOKENIZER_RENDER_SPECIAL);
        printf(" %d", ids[i]);
        show_text(w.p, w.n);
    }
    printf("\n");
}

struct peer {
    struct peer_vocab *vocab;
    const struct tokenizer *t;
    int32_t *ids;
    int max;
};

/* 1 equal, 0 not. */
static int compare_one(struct peer *p, const char *text, size_t n, unsigned flags, int *shown)
{
    struct tok_ids got;
    struct err e;
    tok_ids_init(&got, 1 << 22);
    int rc = tokenizer_encode(p->t, &got, text, n, flags, &e);
    int k = peer_encode(p->vocab, text, (int32_t)n, p->ids, p->max, flags & TOKENIZER_ADD_SPECIAL,
                        flags & TOKENIZER_PARSE_SPECIAL);
    int same = rc == 0 && k >= 0 && (size_t)k == got.n &&
               (k == 0 || memcmp(p->ids, got.ids, got.n * sizeof(*got.ids)) == 0);
    if (!same && *shown < n_show) {
        (*shown)++;
        printf("    ");
        show_text(text, n);
        printf(" flags %u\n", flags);
        show_ids("peer", p->t, p->ids, k > 0 ? (size_t)k : 0);
        show_ids("ours", p->t, got.ids, got.n);
    }
    tok_ids_fini(&got);
    return same;
}

static void compare_texts(struct peer *p)
{
    static const unsigned flags[] = {0, TOKENIZER_PARSE_SPECIAL,
                                     TOKENIZER_PARSE_SPECIAL | TOKENIZER_ADD_SPECIAL};
    struct buf b;
    buf_init(&b, 1 << 20);
    for (enum kind kind = 0; kind < N_KINDS; kind++) {
        int good = 0, all = 0, shown = 0, back = 0;
        for (int i = 0; i < n_per_kind; i++) {
            gen_text(&b, kind, p->t);
            for (size_t f = 0; f < 3; f++, all++)
                good += compare_one(p, buf_str(&b), b.len, flags[f], &shown);
            struct tok_ids ids;
            struct buf text;
            struct err e;
            tok_ids_init(&ids, 1 << 20);
            buf_init(&text, 1 << 20);
            if (tokenizer_encode(p->t, &ids, buf_str(&b), b.len, TOKENIZER_PARSE_SPECIAL, &e) == 0)
                tokenizer_decode(p->t, &text, ids.ids, ids.n, TOKENIZER_RENDER_SPECIAL);
            back += text.len == b.len && memcmp(buf_str(&text), buf_str(&b), b.len) == 0;
            tok_ids_fini(&ids);
            buf_fini(&text);
        }
        printf("  %-15s %6d of %6d equal (%.2f %%), %d of %d round trips\n", kind_name[kind], good,
               all, 100.0 * good / all, back, n_per_kind);
    }
    buf_fini(&b);
}

static void compare_vocab(struct peer *p)
{
    const struct tokenizer_info *in = tokenizer_info(p->t);
    struct peer_info pi = peer_info(p->vocab);
    int pieces = 0, hidden = 0, eog = 0;
    int n = peer_n_tokens(p->vocab);
    for (int32_t id = 0; id < n; id++) {
        char a[4096];
        for (int special = 0; special < 2; special++) {
            int k = peer_piece(p->vocab, id, a, sizeof(a), special);
            struct str w = tokenizer_piece(p->t, id, special ? TOKENIZER_RENDER_SPECIAL : 0);
            if (k < 0 || (size_t)k != w.n || memcmp(a, w.p, w.n) != 0) {
                if (special ? pieces++ < n_show : hidden++ < n_show) {
                    printf("  piece %d (type %d): peer ", id, tokenizer_token_type(p->t, id));
                    show_text(a, k < 0 ? 0 : (size_t)k);
                    printf(" ours ");
                    show_text(w.p, w.n);
                    printf("\n");
                }
            }
        }
        if (peer_is_eog(p->vocab, id) != tokenizer_is_eog(p->t, id)) {
            eog++;
            printf("  end of generation %d: peer %d\n", id, peer_is_eog(p->vocab, id));
        }
    }
    printf(
        "  %d tokens: %d pieces differ (%d when special ones are hidden), %d eog differ; bos %d/%d "
        "eos %d/%d add_bos %d/%d add_eos %d/%d eot %d\n",
        n, pieces, hidden, eog, pi.bos, in->bos, pi.eos, in->eos, pi.add_bos, in->add_bos,
        pi.add_eos, in->add_eos, in->eot);
}

static void compare_speed(struct peer *p)
{
    struct buf b, all;
    struct tok_ids ids;
    struct err e;
    buf_init(&b, 1 << 20);
    buf_init(&all, 1 << 22);
    tok_ids_init(&ids, 1 << 22);
    FILE *f = text_path ? fopen(text_path, "rb") : NULL;
    if (f) {
        char part[4096];
        for (size_t n; all.len < (1 << 20) && (n = fread(part, 1, sizeof(part), f)) > 0;)
            buf_put(&all, part, n);
        fclose(f);
    }
    while (!f && all.len < 300000) {
        gen_text(&b, rnd(8) == 0 ? K_SCRIPTS : rnd(3) ? K_ASCII : K_CODE, p->t);
        buf_put(&all, buf_str(&b), b.len);
    }
    uint64_t t0 = clock_ns();
    int k = peer_encode(p->vocab, buf_str(&all), (int32_t)all.len, p->ids, p->max, false, false);
    uint64_t t1 = clock_ns();
    int rc = tokenizer_encode(p->t, &ids, buf_str(&all), all.len, 0, &e);
    uint64_t t2 = clock_ns();
    ids.n = 0;
    rc |= tokenizer_encode(p->t, &ids, buf_str(&all), all.len, 0, &e);
    uint64_t t3 = clock_ns();
    printf("  speed on %zu bytes (%d tokens): peer %.2f MB/s, ours %.2f first, %.2f again%s\n",
           all.len, k, (double)all.len * 1e3 / (double)(t1 - t0),
           (double)all.len * 1e3 / (double)(t2 - t1), (double)all.len * 1e3 / (double)(t3 - t2),
           rc < 0 ? " FAILED" : "");
    buf_fini(&b);
    buf_fini(&all);
    tok_ids_fini(&ids);
}

static int compare_file(const char *path)
{
    struct model_file *g = NULL;
    struct tokenizer *t = NULL;
    struct err e = {0};
    uint64_t t0 = clock_ns();
    struct peer_vocab *m = peer_load(path);
    uint64_t t1 = clock_ns();
    int rc = gguf_open(&g, path, &e);
    if (rc == 0)
        rc = tokenizer_create(&t, g, &e);
    uint64_t t2 = clock_ns();
    model_file_close(g);
    if (!m || rc < 0) {
        printf("  cannot load: peer %s, ours %s\n", m ? "can" : "cannot", rc < 0 ? e.msg : "can");
    } else {
        struct peer p = {m, t, NULL, 1 << 22};
        p.ids = calloc((size_t)p.max, sizeof(*p.ids));
        printf("  load: peer %.0f ms, ours %.0f ms\n", (double)(t1 - t0) / 1e6,
               (double)(t2 - t1) / 1e6);
        compare_vocab(&p);
        compare_texts(&p);
        compare_speed(&p);
        free(p.ids);
    }
    bool had = m != NULL;
    peer_free(m);
    tokenizer_destroy(t);
    return had && rc == 0 ? 0 : 1;
}

/* A copy of the vocabulary with a different pre-tokenizer. */
static int compare_pre(const char *base, const char *pre)
{
    char path[] = "/tmp/tok_peer.XXXXXX";
    struct model_file *g = NULL;
    struct gguf_write *w = NULL;
    struct err e = {0};
    int fd = mkstemp(path);
    int rc = fd < 0 ? -1 : gguf_open(&g, base, &e);
    if (rc == 0)
        rc = gguf_write_create(&w, path, &e);
    if (rc == 0) {
        gguf_write_copy(w, g);
        gguf_write_str(w, "tokenizer.ggml.pre", pre, strlen(pre));
        rc = gguf_write_begin(w, &e);
    }
    if (rc == 0)
        rc = gguf_write_finish(w, &e);
    gguf_write_destroy(w);
    model_file_close(g);
    printf("== %s as %s\n", base, pre);
    if (rc < 0)
        printf("  cannot write the copy: %s\n", e.msg);
    else
        rc = compare_file(path);
    remove(path);
    return rc;
}

int main(int argc, char **argv)
{
    const char *pre = NULL;
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--n") == 0)
            n_per_kind = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            rng = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--show") == 0)
            n_show = (int)strtol(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--text") == 0)
            text_path = argv[i + 1];
        else if (strcmp(argv[i], "--pre") == 0)
            pre = argv[i + 1];
    }
    if (i + 1 >= argc || peer_open(argv[i]) < 0) {
        fprintf(stderr,
                "usage: %s [--n COUNT] [--seed N] [--show K] [--text FILE] [--pre NAMES] LIBS "
                "FILE...\n",
                argv[0]);
        return 2;
    }
    int bad = 0;
    for (i++; i < argc; i++) {
        for (size_t k = 0; pre && tok_pretok_name(k); k++)
            if (strcmp(pre, "all") == 0 || strstr(pre, tok_pretok_name(k)))
                bad += compare_pre(argv[i], tok_pretok_name(k)) != 0;
        if (!pre) {
            printf("== %s\n", argv[i]);
            bad += compare_file(argv[i]);
        }
        fflush(stdout);
    }
    return bad > 0;
}

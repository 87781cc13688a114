/* bench_grammar.c - the cost of constraints: compiling, the sets of allowed tokens when they are
 * first needed and when they are known, and the step after each token.
 *
 * usage: bench_grammar MODEL.gguf [ROUNDS]
 *
 * Writes random answers under some schemas with the model's vocabulary, without the model.  Prints
 * one line of JSON per schema: microseconds to compile, for the first answer and for the later ones
 * per token, and the bytes that are kept. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "format/model_open.h"
#include "text/grammar/grammar.h"
#include "text/grammar/grammar_mask.h"
#include "text/grammar/grammar_net.h"
#include "text/grammar/vocab_trie.h"
#include "text/tokenizer/tokenizer.h"

static const struct {
    const char *name;
    enum shoal_constraint kind;
    const char *text;
} shapes[] = {
    {"any object", SHOAL_CONSTRAINT_JSON, ""},
    {"person", SHOAL_CONSTRAINT_SCHEMA,
     "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":"
     "\"integer\",\"minimum\":0,\"maximum\":120},\"email\":{\"type\":\"string\",\"format\":"
     "\"email\"},"
     "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"required\":[\"name\","
     "\"age\"]}"},
    {"lengths", SHOAL_CONSTRAINT_SCHEMA,
     "{\"type\":\"string\",\"minLength\":20,\"maxLength\":400}"},
    {"open keys", SHOAL_CONSTRAINT_SCHEMA,
     "{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"integer\"},\"index\":{\"type\":"
     "\"integer\"}},\"additionalProperties\":{\"type\":\"number\"}}"},
    {"regex", SHOAL_CONSTRAINT_REGEX, "([A-Z][a-z]+ ){1,20}[0-9]{4}-[0-9]{2}-[0-9]{2}"},
    {"1,000 names", SHOAL_CONSTRAINT_CHOICE, NULL},
    {"100,000 names", SHOAL_CONSTRAINT_CHOICE, NULL},
    {"100,000 names", SHOAL_CONSTRAINT_REGEX, NULL},
};

/* A list of random names of 4 to 15 letters. */
static char *names(enum shoal_constraint kind, uint32_t n)
{
    const bool regex = kind == SHOAL_CONSTRAINT_REGEX;
    char *text = malloc((size_t)n * 20 + 4), *p = text;
    if (!text)
        exit(1);
    p += sprintf(p, "%s", regex ? "" : "[");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t h = hash_mix(i + 1);
        p += sprintf(p, "%s%s", i == 0 ? "" : regex ? "|" : ",", regex ? "" : "\"");
        for (uint64_t k = 4 + h % 12; k > 0; k--, h = hash_mix(h))
            *p++ = (char)('a' + h % 26);
        p += sprintf(p, "%s", regex ? "" : "\"");
    }
    sprintf(p, "%s", regex ? "" : "]");
    return text;
}

struct run {
    uint64_t first_ns, later_ns;
    uint32_t first_tokens, later_tokens;
};

static void die(const char *what, const struct err *e)
{
    fprintf(stderr, "bench_grammar: %s: %s\n", what, e->msg);
    exit(1);
}

/* One random answer of at most 200 tokens. */
static void answer(struct grammar_mask *m, const struct vocab_trie *v, uint64_t seed, bool first,
                   struct run *r)
{
    struct grammar_mask_set set;
    uint64_t begin = clock_ns(), spent = 0;
    uint32_t place, n = 0;
    if (grammar_mask_start(m, &place) < 0)
        exit(1);
    for (; n < 200 && !grammar_mask_over(m, place); n++) {
        if (grammar_mask_allowed(m, place, false, &set) < 0 || set.n == 0)
            exit(1);
        spent += clock_ns() - begin;
        uint32_t skip = (uint32_t)(hash_mix(seed + n) % set.n),
                 t = 0; /* not timed: sampling is the model's part */
        while (!(set.bits[t / 64] >> (t % 64) & 1) || skip-- > 0)
            t++;
        begin = clock_ns();
        if (v->text_bytes[t] == 0)
            break;
        if (grammar_mask_take(m, &place, (int32_t)t, 0) < 0)
            exit(1);
    }
    spent += clock_ns() - begin;
    *(first ? &r->first_ns : &r->later_ns) += spent;
    *(first ? &r->first_tokens : &r->later_tokens) += n;
}

int main(int argc, char **argv)
{
    const uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 50;
    struct model_file *file;
    struct tokenizer *t;
    struct vocab_trie *v;
    struct err e = {0};
    if (argc < 2) {
        fprintf(stderr, "usage: bench_grammar MODEL.gguf [ROUNDS]\n");
        return 2;
    }
    if (model_open(&file, argv[1], &e) < 0 || tokenizer_create(&t, file, &e) < 0)
        die(argv[1], &e);
    uint64_t begin = clock_ns();
    if (vocab_trie_create(&v, t, tokenizer_info(t)->n_vocab, &e) < 0)
        die(argv[1], &e);
    printf("{\"vocabulary\":%u,\"nodes\":%u,\"build_us\":%.0f}\n", v->n_vocab, v->n_nodes,
           (double)(clock_ns() - begin) / 1e3);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct grammar_net *net;
        struct grammar_mask *m;
        struct run r = {0};
        char *made =
            shapes[i].text ? NULL : names(shapes[i].kind, shapes[i].name[1] == ',' ? 1000 : 100000);
        const char *text = made ? made : shapes[i].text;
        begin = clock_ns();
        if (grammar_compile(&net, shapes[i].kind, text, strlen(text), &e) < 0 ||
            grammar_mask_create(&m, net, v, &e) < 0)
            die(shapes[i].name, &e);
        double compile = (double)(clock_ns() - begin) / 1e3;
        for (uint32_t k = 0; k <= rounds; k++)
            answer(m, v, k * 1000, k == 0, &r);
        printf("{\"name\":\"%s\",\"states\":%u,\"compile_us\":%.0f,\"first_us_per_token\":%.2f,"
               "\"later_us_per_token\":%.2f,\"kept_bytes\":%zu}\n",
               shapes[i].name, net->n_states, compile,
               (double)r.first_ns / 1e3 / (r.first_tokens ? r.first_tokens : 1),
               (double)r.later_ns / 1e3 / (r.later_tokens ? r.later_tokens : 1),
               grammar_mask_bytes(m));
        grammar_mask_destroy(m);
        grammar_net_destroy(net);
        free(made);
    }
    vocab_trie_destroy(v);
    tokenizer_destroy(t);
    model_file_close(file);
    return 0;
}

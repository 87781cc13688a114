/* vocab_trie.c - see vocab_trie.h. */
#include "text/grammar/vocab_trie.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/tokenizer/tokenizer.h"

#define MAX_TEXT 1024u /* bytes of a token; longer ones are skipped */

struct entry { /* for sorting */
    const uint8_t *p;
    uint32_t n, token;
};

static int by_text(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    uint32_t n = x->n < y->n ? x->n : y->n;
    int c = memcmp(x->p, y->p, n);
    if (c == 0)
        c = x->n < y->n ? -1 : x->n > y->n;
    if (c == 0)
        c = x->token < y->token ? -1 : 1;
    return c;
}

/* The text of a token as the trie has it; marked: it is a spelling. */
static struct str text_of(const struct tokenizer *t, uint32_t id, bool *marked)
{
    struct str s = tokenizer_piece(t, (int32_t)id, 0);
    *marked = s.n == 0 && tokenizer_token_type(t, (int32_t)id) == TOKEN_TYPE_CONTROL;
    if (*marked)
        s = tokenizer_piece(t, (int32_t)id, TOKENIZER_RENDER_SPECIAL);
    if (s.n > MAX_TEXT || tokenizer_is_eog(t, (int32_t)id))
        s.n = 0;
    return s;
}

/* Copies the texts, and lists them. */
static uint32_t gather(struct vocab_trie *v, const struct tokenizer *t, struct entry *list)
{
    uint8_t *at = v->bytes;
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_vocab; i++) {
        bool marked;
        struct str s = text_of(t, i, &marked);
        if (tokenizer_is_eog(t, (int32_t)i))
            v->ends[i / 64] |= (uint64_t)1 << (i % 64);
        if (s.n == 0)
            continue;
        v->texts[i] = at;
        if (marked)
            *at++ = VOCAB_TRIE_MARK;
        memcpy(at, s.p, s.n);
        at += s.n;
        if (marked)
            *at++ = VOCAB_TRIE_MARK;
        v->text_bytes[i] = (uint16_t)(at - v->texts[i]);
        list[n++] = (struct entry){v->texts[i], v->text_bytes[i], i};
    }
    return n;
}

/* The node's text is complete: its subtree is known, and counts for the parent too. */
static void close_node(struct vocab_trie *v, uint32_t node, uint32_t above)
{
    struct vocab_trie_node *n = &v->nodes[node], *up = &v->nodes[above];
    const uint8_t height = n->height < UINT8_MAX ? n->height + 1 : UINT8_MAX;
    n->end = v->n_nodes;
    up->below |= n->below | (uint64_t)1 << vocab_trie_class(n->byte);
    up->height = up->height < height ? height : up->height;
}

/* The sorted texts one after the other: each shares a prefix with the one before. */
static void fill(struct vocab_trie *v, const struct entry *list, uint32_t n)
{
    uint32_t path[MAX_TEXT + 3]; /* nodes of the last text */
    uint32_t depth = 0;
    v->nodes[0] = (struct vocab_trie_node){.token = VOCAB_TRIE_NONE};
    v->n_nodes = 1;
    path[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t shared = 0;
        const uint32_t most = depth < list[i].n ? depth : list[i].n;
        while (shared < most && v->nodes[path[shared + 1]].byte == list[i].p[shared])
            shared++;
        for (; depth > shared; depth--)
            close_node(v, path[depth], path[depth - 1]);
        for (; depth < list[i].n; depth++) {
            path[depth + 1] = v->n_nodes;
            v->nodes[v->n_nodes++] = (struct vocab_trie_node){.token = VOCAB_TRIE_NONE,
                                                              .first = i,
                                                              .depth = (uint16_t)(depth + 1),
                                                              .byte = list[i].p[depth]};
        }
        v->max_depth = depth > v->max_depth ? depth : v->max_depth;
        v->same[list[i].token] = v->nodes[path[depth]].token;
        v->nodes[path[depth]].token = list[i].token;
        v->order[i] = list[i].token;
    }
    v->n_order = n;
    for (; depth > 0; depth--)
        close_node(v, path[depth], path[depth - 1]);
    v->nodes[0].end = v->n_nodes;
}

int vocab_trie_create(struct vocab_trie **out, const struct tokenizer *t, uint32_t n_vocab,
                      struct err *e)
{
    struct vocab_trie *v = mem_zalloc(sizeof(*v));
    struct entry *list = NULL;
    size_t n_bytes = 0;
    *out = NULL;
    if (!v)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary");
    v->n_vocab = n_vocab;
    for (uint32_t i = 0; i < v->n_vocab; i++) {
        bool marked;
        n_bytes += text_of(t, i, &marked).n + 2;
    }
    v->nodes = mem_zalloc_n(n_bytes + 1, sizeof(*v->nodes));
    v->same = mem_zalloc_n(v->n_vocab, sizeof(*v->same));
    v->order = mem_zalloc_n(v->n_vocab + 1, sizeof(*v->order));
    v->texts = mem_zalloc_n(v->n_vocab, sizeof(*v->texts));
    v->text_bytes = mem_zalloc_n(v->n_vocab, sizeof(*v->text_bytes));
    v->ends = mem_zalloc_n(vocab_trie_words(v) + 1, sizeof(*v->ends));
    v->bytes = mem_zalloc(n_bytes + 1);
    v->n_bytes = n_bytes;
    list = mem_zalloc_n(v->n_vocab + 1, sizeof(*list));
    if (v->nodes && v->same && v->order && v->texts && v->text_bytes && v->ends && v->bytes &&
        list) {
        uint32_t n = gather(v, t, list);
        qsort(list, n, sizeof(*list), by_text);
        fill(v, list, n);
        struct vocab_trie_node *less = mem_realloc(v->nodes, v->n_nodes * sizeof(*v->nodes));
        v->nodes = less ? less : v->nodes;
        *out = v;
        v = NULL;
    }
    mem_free(list);
    vocab_trie_destroy(v);
    return *out ? 0 : err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary");
}

size_t vocab_trie_bytes(const struct vocab_trie *v)
{
    const size_t token =
        sizeof(*v->same) + sizeof(*v->order) + sizeof(*v->texts) + sizeof(*v->text_bytes);
    return v->n_nodes * sizeof(*v->nodes) + v->n_vocab * token + v->n_bytes;
}

void vocab_trie_destroy(struct vocab_trie *v)
{
    if (!v)
        return;
    mem_free(v->nodes);
    mem_free(v->same);
    mem_free(v->order);
    mem_free(v->texts);
    mem_free(v->text_bytes);
    mem_free(v->ends);
    mem_free(v->bytes);
    mem_free(v);
}

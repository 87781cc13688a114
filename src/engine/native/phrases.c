/* phrases.c - see phrases.h. */
#include "engine/native/phrases.h"

#include <ctype.h>

#include "base/mem.h"
#include "text/tokenizer/tokenizer.h"

/* Chosen on spoken commands of a home (docs/VOICE.md).  Inside a phrase more speaks for it.  A word
 * that is one token is known to the recognizer: it needs less help, and bends other speech more. */
#define FIRST_BONUS 4.0f
#define NEXT_BONUS 5.0f
#define KNOWN_FIRST_BONUS 2.0f
#define KNOWN_NEXT_BONUS 3.0f

struct node {
    int32_t token;
    uint32_t child, next; /* first child, next sibling; 0: none */
    bool begins_word, ends_word;
};

struct phrases {
    struct node *nodes; /* the first is the root */
    uint32_t n, cap;
};

static int add_node(struct phrases *p, uint32_t parent, int32_t token, uint32_t *at, struct err *e)
{
    for (uint32_t i = p->nodes[parent].child; i; i = p->nodes[i].next)
        if (p->nodes[i].token == token) {
            *at = i;
            return 0;
        }
    if (p->n == p->cap) {
        struct node *bigger = mem_realloc(p->nodes, 2 * (size_t)p->cap * sizeof(*bigger));
        if (!bigger)
            return err_set(e, SHOAL_ENOMEM, "out of memory for phrases");
        p->nodes = bigger;
        p->cap *= 2;
    }
    p->nodes[p->n] = (struct node){.token = token, .next = p->nodes[parent].child};
    p->nodes[parent].child = p->n;
    *at = p->n++;
    return 0;
}

static int add_form(struct phrases *p, const struct tokenizer *t, const char *text, size_t n,
                    struct tok_ids *ids, struct err *e)
{
    uint32_t at = 0;
    ids->n = 0;
    int rc = tokenizer_encode(t, ids, text, n, 0, e);
    for (size_t i = 0; rc == 0 && i < ids->n; i++) {
        const bool last = i + 1 == ids->n;
        const struct str piece = tokenizer_piece(t, ids->ids[i], 0);
        const struct str next =
            last ? (struct str){" ", 1} : tokenizer_piece(t, ids->ids[i + 1], 0);
        rc = add_node(p, at, ids->ids[i], &at, e);
        if (rc == 0 && (i == 0 || (piece.n > 0 && piece.p[0] == ' ')))
            p->nodes[at].begins_word = true;
        if (rc == 0 && next.n > 0 && next.p[0] == ' ')
            p->nodes[at].ends_word = true;
    }
    return rc;
}

/* As it is written, in lower case, with one capital, with capital initials. */
static int add_phrase(struct phrases *p, const struct tokenizer *t, const char *text, size_t n,
                      struct tok_ids *ids, struct err *e)
{
    char form[PHRASES_MAX_BYTES];
    if (n > sizeof(form))
        return err_set(e, SHOAL_EINVAL, "a phrase has %zu bytes, at most %u are allowed", n,
                       PHRASES_MAX_BYTES);
    int rc = add_form(p, t, text, n, ids, e);
    for (int capitals = 0; rc == 0 && capitals < 3; capitals++) {
        for (size_t i = 0; i < n; i++) {
            const bool initial = i == 0 || (capitals == 2 && text[i - 1] == ' ');
            form[i] = (char)(capitals && initial ? toupper((unsigned char)text[i])
                                                 : tolower((unsigned char)text[i]));
        }
        rc = add_form(p, t, form, n, ids, e);
    }
    return rc;
}

int phrases_create(struct phrases **out, const struct tokenizer *t, const char *text, size_t n,
                   struct err *e)
{
    struct phrases *p = mem_zalloc(sizeof(*p));
    struct tok_ids ids;
    uint32_t count = 0;
    int rc = 0;
    *out = NULL;
    tok_ids_init(&ids, PHRASES_MAX_BYTES + 2);
    if (p) {
        p->cap = 64;
        p->nodes = mem_zalloc_n(p->cap, sizeof(*p->nodes));
        p->n = 1;
    }
    if (!p || !p->nodes)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for phrases");
    for (const char *end = text + n, *at = text; rc == 0 && at < end;) {
        size_t len = 0;
        while (at + len < end && at[len] != '\n' && at[len] != ',')
            len++;
        const char *from = at, *to = at + len;
        at = to + 1;
        while (from < to && isspace((unsigned char)*from))
            from++;
        while (to > from && isspace((unsigned char)to[-1]))
            to--;
        if (from == to)
            continue;
        if (++count > PHRASES_MAX)
            rc = err_set(e, SHOAL_EINVAL, "there are more than %u phrases", PHRASES_MAX);
        else
            rc = add_phrase(p, t, from, (size_t)(to - from), &ids, e);
    }
    tok_ids_fini(&ids);
    if (rc < 0)
        phrases_destroy(p);
    else
        *out = p;
    return rc;
}

void phrases_destroy(struct phrases *p)
{
    if (!p)
        return;
    mem_free(p->nodes);
    mem_free(p);
}

static float bonus_of(const struct node *n, bool first)
{
    if (n->begins_word && n->ends_word)
        return first ? KNOWN_FIRST_BONUS : KNOWN_NEXT_BONUS;
    return first ? FIRST_BONUS : NEXT_BONUS;
}

static void help_children(const struct phrases *p, uint32_t node, float *logits, float best)
{
    for (uint32_t i = p->nodes[node].child; i; i = p->nodes[i].next) {
        const float bonus = bonus_of(&p->nodes[i], node == 0);
        float *x = &logits[p->nodes[i].token];
        /* A bonus that cannot win changes only probabilities.  At most once: then it is above. */
        if (*x <= best && *x + bonus > best)
            *x += bonus;
    }
}

void phrases_help(const struct phrases *p, const struct phrases_place *at, float *logits,
                  float best, bool may_begin)
{
    for (uint32_t i = 0; i < at->n; i++)
        help_children(p, at->open[i], logits, best);
    if (may_begin)
        help_children(p, 0, logits, best);
}

enum phrases_state phrases_take(const struct phrases *p, struct phrases_place *at, int32_t token)
{
    struct phrases_place next = {.n = 0};
    enum phrases_state state = PHRASES_OUTSIDE;
    for (uint32_t k = 0; k <= at->n; k++) {
        const uint32_t node = k < at->n ? at->open[k] : 0;
        for (uint32_t i = p->nodes[node].child; i; i = p->nodes[i].next) {
            if (p->nodes[i].token != token)
                continue;
            if (state != PHRASES_WORD)
                state = p->nodes[i].ends_word ? PHRASES_WORD : PHRASES_INSIDE;
            if (p->nodes[i].child && next.n < PHRASES_MAX_OPEN)
                next.open[next.n++] = i;
        }
    }
    *at = next;
    return state;
}

/* sounds.c - see sounds.h. */
#include "text/speech/sounds.h"

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/rd.h"
#include "base/str.h"

#define MAX_ORDER 8u
#define BEAM 12u
#define STEP_WORDS 32u /* words that share prefixes */
#define BEGIN 0u
#define END 1u
#define FIRST_PAIR 2u
#define UNSEEN 255u

struct pair { /* one or two letters, and what is said for them */
    char letters[2];
    uint8_t n_letters, n_sounds;
    const uint8_t *sounds;
};

struct sounds {
    struct str *names; /* of sounds */
    struct pair *pairs;
    uint32_t n_names, n_pairs, n_grams, n_words, order, floor;
    const uint8_t *keys, *costs; /* [n_grams] of 8 and 2 bytes: cost, cost of going on without */
    const uint8_t *starts;       /* of every 32nd word */
    struct rd words;
    uint32_t by_letter[26 * 27 + 1]; /* first pair that begins so; pairs are sorted */
};

/* ---- reading the data --------------------------------------------------------------------------
 */

static bool names_are_known(const struct sounds *s, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] >= s->n_names)
            return false;
    return true;
}

static uint32_t rank_of(const char *letters, uint32_t n)
{
    return (uint32_t)(letters[0] - 'a') * 27 + (n == 2 ? (uint32_t)(letters[1] - 'a') + 1 : 0);
}

static bool read_pair(struct sounds *s, struct rd *r, struct pair *p)
{
    const uint8_t n = rd_u8(r);
    const uint8_t *letters = rd_take(r, n);
    p->n_sounds = rd_u8(r);
    p->sounds = rd_take(r, p->n_sounds);
    if (r->bad || n < 1 || n > 2 || !names_are_known(s, p->sounds, p->n_sounds))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (letters[i] < 'a' || letters[i] > 'z')
            return false;
    memcpy(p->letters, letters, n);
    p->n_letters = n;
    return true;
}

static bool read_pairs(struct sounds *s, struct rd *r)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        struct pair *p = &s->pairs[i];
        if (!read_pair(s, r, p))
            return false;
        const uint32_t rank = rank_of(p->letters, p->n_letters);
        if (rank + 1 < next) /* not sorted */
            return false;
        while (next <= rank)
            s->by_letter[next++] = i;
    }
    while (next <= 26 * 27)
        s->by_letter[next++] = s->n_pairs;
    return true;
}

static bool read_all(struct sounds *s, struct rd *r)
{
    for (uint32_t i = 0; i < s->n_names; i++) {
        s->names[i].n = rd_u8(r);
        s->names[i].p = (const char *)rd_take(r, s->names[i].n);
    }
    if (r->bad || !read_pairs(s, r))
        return false;
    s->keys = rd_take(r, (uint64_t)s->n_grams * 8);
    s->costs = rd_take(r, (uint64_t)s->n_grams * 2);
    s->starts = rd_take(r, (uint64_t)(s->n_words + STEP_WORDS - 1) / STEP_WORDS * 4);
    const uint32_t n_bytes = rd_u32(r);
    const uint8_t *words = rd_take(r, n_bytes);
    if (r->bad || rd_left(r) > 0)
        return false;
    s->words = rd_make(words, n_bytes);
    return true;
}

int sounds_create(struct sounds **out, const void *data, size_t n, struct err *e)
{
    struct rd r = rd_make(data, n);
    const uint8_t *magic = rd_take(&r, 4);
    struct sounds *s = mem_zalloc(sizeof(*s));
    *out = NULL;
    if (!s)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the sounds of words");
    s->n_names = rd_u16(&r);
    s->n_pairs = rd_u16(&r);
    s->n_grams = rd_u32(&r);
    s->n_words = rd_u32(&r);
    s->order = rd_u8(&r);
    s->floor = rd_u8(&r);
    bool ok = !r.bad && memcmp(magic, "SND1", 4) == 0 && s->n_names <= 256 && s->order >= 2 &&
              s->order <= MAX_ORDER;
    s->names = ok ? mem_zalloc_n(s->n_names + 1, sizeof(*s->names)) : NULL;
    s->pairs = ok ? mem_zalloc_n(s->n_pairs + 1, sizeof(*s->pairs)) : NULL;
    const bool memory = !ok || (s->names && s->pairs);
    if (!memory || !ok || !read_all(s, &r)) {
        sounds_destroy(s);
        return memory ? err_set(e, SHOAL_EFORMAT, "the sounds of words are damaged")
                      : err_set(e, SHOAL_ENOMEM, "out of memory for the sounds of words");
    }
    *out = s;
    return 0;
}

void sounds_destroy(struct sounds *s)
{
    if (!s)
        return;
    mem_free(s->names);
    mem_free(s->pairs);
    mem_free(s);
}

static void put(const struct sounds *s, struct buf *out, const uint8_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] < s->n_names)
            buf_put(out, s->names[list[i]].p, s->names[list[i]].n);
}

/* ---- the dictionary -----------------------------------------------------------------------------
 */

struct entry {
    char word[256];
    size_t n;
    const uint8_t *sounds;
    uint8_t n_sounds;
};

static bool next_entry(struct rd *r, struct entry *x)
{
    const uint8_t shared = rd_u8(r), n = rd_u8(r);
    const uint8_t *rest = rd_take(r, n);
    x->n_sounds = rd_u8(r);
    x->sounds = rd_take(r, x->n_sounds);
    if (r->bad || shared > x->n || (size_t)shared + n > sizeof(x->word))
        return false;
    if (n)
        memcpy(x->word + shared, rest, n);
    x->n = (size_t)shared + n;
    return true;
}

static int order(const struct entry *x, const char *word, size_t n)
{
    const int c = memcmp(x->word, word, x->n < n ? x->n : n);
    return c ? c : (x->n > n) - (x->n < n);
}

/* A reader at the first word of a group. */
static struct rd group(const struct sounds *s, uint32_t i)
{
    struct rd r = s->words;
    uint32_t at;
    memcpy(&at, s->starts + (size_t)i * 4, sizeof(at));
    (void)rd_take(&r, at);
    return r;
}

bool sounds_find(const struct sounds *s, const char *word, size_t n, struct buf *out)
{
    uint32_t low = 0, high = (s->n_words + STEP_WORDS - 1) / STEP_WORDS;
    struct entry x;
    if (n == 0 || high == 0)
        return false;
    while (high - low > 1) { /* the last group whose first word is not after ours */
        const uint32_t mid = low + (high - low) / 2;
        struct rd r = group(s, mid);
        x.n = 0;
        if (!next_entry(&r, &x))
            return false;
        if (order(&x, word, n) > 0)
            high = mid;
        else
            low = mid;
    }
    struct rd r = group(s, low);
    x.n = 0;
    for (uint32_t i = 0; i < STEP_WORDS && next_entry(&r, &x); i++)
        if (order(&x, word, n) == 0) {
            put(s, out, x.sounds, x.n_sounds);
            return true;
        }
    return false;
}

/* ---- the model
 * ----------------------------------------------------------------------------------- */

static uint64_t extend(uint64_t key, uint32_t id)
{
    return hash_mix(key * 1000003u + id + 1);
}

/* Costs of an n-gram, or NULL. */
static const uint8_t *gram(const struct sounds *s, uint64_t key)
{
    uint32_t low = 0, high = s->n_grams;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        uint64_t at;
        memcpy(&at, s->keys + (size_t)mid * 8, sizeof(at));
        if (at == key)
            return s->costs + (size_t)mid * 2;
        if (at < key)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

struct path {
    uint32_t cost;
    uint16_t last[MAX_ORDER - 1]; /* pairs, the newest at order - 2 */
    uint16_t from;                /* place of the path that it continues */
};

struct search {
    const struct sounds *s;
    struct path paths[SOUNDS_MAX_WORD + 1][BEAM]; /* by letters that are said, best first */
    uint32_t n[SOUNDS_MAX_WORD + 1];
};

/* What path p costs with pair w next. */
static uint32_t cost_of(const struct sounds *s, const struct path *p, uint32_t w)
{
    uint32_t total = 0;
    for (uint32_t n = s->order - 1;; n--) {
        uint64_t with = n + 1, without = n;
        for (uint32_t i = s->order - 1 - n; i < s->order - 1; i++) {
            with = extend(with, p->last[i]);
            without = extend(without, p->last[i]);
        }
        const uint8_t *c = gram(s, extend(with, w));
        if (c && c[0] < UNSEEN)
            return total + c[0];
        if (n == 0)
            return total + s->floor;
        c = gram(s, without);
        total += c ? c[1] : 0;
    }
}

/* Keeps the path if it is among the best; of two with the same past the cheaper one stays. */
static void offer(struct search *q, uint32_t at, const struct path *p)
{
    struct path *list = q->paths[at];
    uint32_t n = q->n[at], i;
    for (i = 0; i < n; i++)
        if (memcmp(list[i].last, p->last, sizeof(p->last)) == 0) {
            if (list[i].cost <= p->cost)
                return;
            memmove(list + i, list + i + 1, (--n - i) * sizeof(*list));
            break;
        }
    for (i = n; i > 0 && list[i - 1].cost > p->cost; i--)
        ;
    if (i == BEAM)
        return;
    n = n < BEAM ? n : BEAM - 1;
    memmove(list + i + 1, list + i, (n - i) * sizeof(*list));
    list[i] = *p;
    q->n[at] = n + 1;
}

/* Continues a path by every pair that begins with `n` letters. */
static void go_on(struct search *q, const char *letters, uint32_t n, uint32_t at, uint32_t which)
{
    const struct sounds *s = q->s;
    const uint32_t rank = rank_of(letters, n);
    const struct path *p = &q->paths[at][which];
    for (uint32_t i = s->by_letter[rank]; i < s->by_letter[rank + 1]; i++) {
        struct path next = {.cost = p->cost + cost_of(s, p, FIRST_PAIR + i),
                            .from = (uint16_t)which};
        memcpy(next.last, p->last + 1, (s->order - 2) * sizeof(*next.last));
        next.last[s->order - 2] = (uint16_t)(FIRST_PAIR + i);
        offer(q, at + n, &next);
    }
}

/* Main stresses of a path. */
static uint32_t count_stresses(const struct search *q, uint32_t at, uint32_t which)
{
    uint32_t n = 0;
    while (at > 0) {
        const struct path *p = &q->paths[at][which];
        const struct pair *pair = &q->s->pairs[p->last[q->s->order - 2] - FIRST_PAIR];
        for (uint32_t i = 0; i < pair->n_sounds; i++) {
            const struct str name = q->s->names[pair->sounds[i]];
            n += name.n > 2 && memcmp(name.p, "ˈ", 2) == 0;
        }
        at -= pair->n_letters;
        which = p->from;
    }
    return n;
}

static void put_path(const struct search *q, uint32_t at, uint32_t which, struct buf *out)
{
    const struct pair *steps[SOUNDS_MAX_WORD];
    uint32_t n = 0;
    while (at > 0) {
        const struct path *p = &q->paths[at][which];
        const struct pair *pair = &q->s->pairs[p->last[q->s->order - 2] - FIRST_PAIR];
        steps[n++] = pair;
        at -= pair->n_letters;
        which = p->from;
    }
    while (n-- > 0)
        put(q->s, out, steps[n]->sounds, steps[n]->n_sounds);
}

static void guess(struct search *q, const char *letters, uint32_t n, struct buf *out)
{
    uint32_t best = 0, least = UINT32_MAX;
    q->n[0] = 1;
    for (uint32_t at = 0; at < n; at++)
        for (uint32_t i = 0; i < q->n[at]; i++) {
            go_on(q, letters + at, 1, at, i);
            if (at + 1 < n)
                go_on(q, letters + at, 2, at, i);
        }
    for (uint32_t i = 0; i < q->n[n]; i++) {
        uint32_t cost = q->paths[n][i].cost + cost_of(q->s, &q->paths[n][i], END);
        if (count_stresses(q, n, i) != 1) /* a word has one main stress, if a way to say it has */
            cost += UINT32_MAX / 2;
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    if (q->n[n] > 0)
        put_path(q, n, best, out);
}

void sounds_guess(const struct sounds *s, const char *word, size_t n, struct buf *out)
{
    char letters[SOUNDS_MAX_WORD];
    uint32_t n_letters = 0;
    for (size_t i = 0; i < n && n_letters < SOUNDS_MAX_WORD; i++)
        if (word[i] >= 'a' && word[i] <= 'z')
            letters[n_letters++] = word[i];
    struct search *q = n_letters ? mem_zalloc(sizeof(*q)) : NULL;
    if (!q) {
        if (n_letters)
            out->rc = SHOAL_ENOMEM;
        return;
    }
    q->s = s;
    guess(q, letters, n_letters, out);
    mem_free(q);
}

/* ---- endings
 * ---------------------------------------------------------------------------------------- */

static bool ends_with(const struct buf *b, const char *const *list)
{
    for (; *list; list++) {
        const size_t n = strlen(*list);
        if (b->len >= n && memcmp(b->data + b->len - n, *list, n) == 0)
            return true;
    }
    return false;
}

static void put_s(struct buf *out)
{
    static const char *const hissing[] = {"s", "z", "ʃ", "ʒ", NULL};
    static const char *const voiceless[] = {"p", "t", "k", "f", "θ", NULL};
    buf_puts(out, ends_with(out, hissing) ? "ɪz" : ends_with(out, voiceless) ? "s" : "z");
}

static void put_ed(struct buf *out)
{
    static const char *const stops[] = {"t", "d", NULL};
    static const char *const voiceless[] = {"p", "k", "f", "θ", "s", "ʃ", NULL};
    buf_puts(out, ends_with(out, stops) ? "ɪd" : ends_with(out, voiceless) ? "t" : "d");
}

static void put_ing(struct buf *out)
{
    buf_puts(out, "ɪŋ");
}

/* The word without an ending, if the dictionary has that. */
static bool say_stem(const struct sounds *s, const char *word, size_t n, struct buf *out)
{
    static const struct {
        const char *ending, *instead;
        void (*put)(struct buf *out);
    } rules[] = {
        {"'s", "", put_s},  {"s'", "", put_s},    {"ies", "y", put_s},   {"es", "e", put_s},
        {"es", "", put_s},  {"s", "", put_s},     {"ied", "y", put_ed},  {"ed", "e", put_ed},
        {"ed", "", put_ed}, {"ing", "", put_ing}, {"ing", "e", put_ing},
    };
    char stem[SOUNDS_MAX_WORD + 2];
    for (size_t i = 0; n <= SOUNDS_MAX_WORD && i < sizeof(rules) / sizeof(rules[0]); i++) {
        const size_t cut = strlen(rules[i].ending), add = strlen(rules[i].instead);
        if (n < cut + 3 || memcmp(word + n - cut, rules[i].ending, cut) != 0)
            continue;
        memcpy(stem, word, n - cut);
        memcpy(stem + n - cut, rules[i].instead, add);
        if (sounds_find(s, stem, n - cut + add, out)) {
            rules[i].put(out);
            return true;
        }
    }
    return false;
}

void sounds_say(const struct sounds *s, const char *word, size_t n, struct buf *out)
{
    if (!sounds_find(s, word, n, out) && !say_stem(s, word, n, out))
        sounds_guess(s, word, n, out);
}

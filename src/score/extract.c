/* extract.c - see extract.h. */
#include "score/extract.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/file/file_map.h"
#include "base/file/file_open.h"
#include "base/mem.h"
#include "base/strmap.h"

#define MODEL_TYPE "shoal_summary"
#define MAX_SENTENCES 4096u
#define DOC_BYTES ((size_t)256 << 20)

enum {
    CENTROID,
    START,
    POSITION,
    LENGTH,
    SHORT,
    DIGIT,
    FREQUENCY,
    TITLE,
    BACKWARD,
    FIRST,
    QUESTION,
    CONTENT
};
static const char *const names[EXTRACT_FEATURES] = {"centroid", "start", "position",  "length",
                                                    "short",    "digit", "frequency", "title",
                                                    "backward", "first", "question",  "content"};

/* A text is a dialogue if it has at least this many lines, and most of them begin with the name of
 * a speaker who speaks more than once. */
#define MIN_TURNS 4u
#define MAX_LABEL_BYTES 40u
#define MAX_SPEAKERS 64u
#define ENOUGH_CONTENT 4u /* content words of a sentence that says something */

struct extract_weights {
    double of[EXTRACT_FEATURES], bias, redundancy;
};

struct extract {
    cJSON *json; /* owns the words of the sets */
    const char *encoder;
    struct extract_weights prose, dialogue;
    uint32_t n_sentences, max_sentences;
    struct strmap abbreviations, stop_words, backward_words;
};

/* ---- opening -------------------------------------------------------------------------------- */

static int read_number(const cJSON *o, const char *key, double min, double max, double *out,
                       struct err *e)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= min && v->valuedouble <= max))
        return err_set(e, SHOAL_EFORMAT, "%s is not a number from %g to %g", key, min, max);
    *out = v->valuedouble;
    return 0;
}

static int read_words(const cJSON *o, const char *key, struct strmap *out, struct err *e)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(o, key), *w;
    if (!cJSON_IsArray(list))
        return err_set(e, SHOAL_EFORMAT, "%s is not a list", key);
    if (strmap_init(out, (size_t)cJSON_GetArraySize(list)) < 0)
        return err_set(e, SHOAL_ENOMEM, "%s", key);
    cJSON_ArrayForEach(w, list)
    {
        if (!cJSON_IsString(w))
            return err_set(e, SHOAL_EFORMAT, "%s contains a value that is not a string", key);
        if (strmap_put(out, w->valuestring, strlen(w->valuestring), 0) < 0)
            return err_set(e, SHOAL_ENOMEM, "%s", key);
    }
    return 0;
}

static int read_features(const struct extract *x, struct err *e)
{
    const cJSON *f = cJSON_GetObjectItemCaseSensitive(x->json, "features");
    if (!cJSON_IsArray(f) || cJSON_GetArraySize(f) != (int)EXTRACT_FEATURES)
        return err_set(e, SHOAL_EFORMAT, "features and weights must be lists of %u values",
                       EXTRACT_FEATURES);
    f = f->child;
    for (uint32_t i = 0; i < EXTRACT_FEATURES; i++, f = f->next)
        if (!cJSON_IsString(f) || strcmp(f->valuestring, names[i]) != 0)
            return err_set(e, SHOAL_EUNSUPPORTED, "feature %u must be \"%s\"", i, names[i]);
    return 0;
}

static int read_weights(const cJSON *o, struct extract_weights *out, struct err *e)
{
    const cJSON *w = cJSON_GetObjectItemCaseSensitive(o, "weights");
    int rc;
    if (!cJSON_IsArray(w) || cJSON_GetArraySize(w) != (int)EXTRACT_FEATURES)
        return err_set(e, SHOAL_EFORMAT, "features and weights must be lists of %u values",
                       EXTRACT_FEATURES);
    w = w->child;
    for (uint32_t i = 0; i < EXTRACT_FEATURES; i++, w = w->next) {
        if (!cJSON_IsNumber(w) || !isfinite(w->valuedouble))
            return err_set(e, SHOAL_EFORMAT, "weight %u is not a number", i);
        out->of[i] = w->valuedouble;
    }
    rc = read_number(o, "bias", -1e6, 1e6, &out->bias, e);
    return rc < 0 ? rc : read_number(o, "redundancy", 0, 1e6, &out->redundancy, e);
}

static int read_dialogue(struct extract *x, struct err *e)
{
    int rc = read_weights(cJSON_GetObjectItemCaseSensitive(x->json, "dialogue"), &x->dialogue, e);
    return rc < 0 ? err_wrap(e, "dialogue") : 0;
}

static int read_all(struct extract *x, struct err *e)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(x->json, "model_type");
    const cJSON *encoder = cJSON_GetObjectItemCaseSensitive(x->json, "encoder");
    double k = 0, most = 0;
    int rc;
    if (!cJSON_IsString(type) || strcmp(type->valuestring, MODEL_TYPE) != 0)
        return err_set(e, SHOAL_EUNSUPPORTED, "model_type must be \"" MODEL_TYPE "\"");
    if (!cJSON_IsString(encoder) || !*encoder->valuestring)
        return err_set(e, SHOAL_EFORMAT, "encoder is not the name of a folder");
    x->encoder = encoder->valuestring;
    if ((rc = read_features(x, e)) < 0 || (rc = read_weights(x->json, &x->prose, e)) < 0 ||
        (rc = read_dialogue(x, e)) < 0 ||
        (rc = read_number(x->json, "sentences", 1, MAX_SENTENCES, &k, e)) < 0 ||
        (rc = read_number(x->json, "max_sentences", 1, MAX_SENTENCES, &most, e)) < 0 ||
        (rc = read_words(x->json, "abbreviations", &x->abbreviations, e)) < 0 ||
        (rc = read_words(x->json, "stop_words", &x->stop_words, e)) < 0 ||
        (rc = read_words(x->json, "backward_words", &x->backward_words, e)) < 0)
        return rc;
    x->n_sentences = (uint32_t)k;
    x->max_sentences = (uint32_t)most;
    return 0;
}

int extract_parse(struct extract **out, const char *json, size_t n, struct err *e)
{
    *out = NULL;
    struct extract *x = mem_zalloc(sizeof(*x));
    if (!x)
        return err_set(e, SHOAL_ENOMEM, "summarizer");
    x->json = cJSON_ParseWithLength(json, n);
    int rc = x->json ? read_all(x, e) : err_set(e, SHOAL_EFORMAT, "no JSON");
    if (rc < 0) {
        extract_close(x);
        return rc;
    }
    *out = x;
    return 0;
}

int extract_open(struct extract **out, const char *path, struct err *e)
{
    struct file_map map;
    *out = NULL;
    int rc = file_map_open(&map, path, e);
    if (rc < 0)
        return rc;
    rc = extract_parse(out, (const char *)map.bytes, map.n_bytes, e);
    file_map_close(&map);
    return rc < 0 ? err_wrap(e, "%s", path) : 0;
}

void extract_close(struct extract *x)
{
    if (!x)
        return;
    strmap_fini(&x->abbreviations);
    strmap_fini(&x->stop_words);
    strmap_fini(&x->backward_words);
    cJSON_Delete(x->json);
    mem_free(x);
}

bool extract_detect(const char *path)
{
    char head[256];
    int fd = file_open_regular(path, NULL);
    ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head) - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0 || head[0] != '{')
        return false;
    head[n] = '\0';
    return strstr(head, "\"" MODEL_TYPE "\"") != NULL;
}

const char *extract_encoder(const struct extract *x)
{
    return x->encoder;
}

/* ---- words and sentences -------------------------------------------------------------------- */

struct span {
    const char *p;
    size_t n;
};

/* Length of the white space at p, as Python splits words; 0: none. */
static size_t space_at(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    if (n == 0)
        return 0;
    if (u[0] == ' ' || (u[0] >= 9 && u[0] <= 13) || (u[0] >= 0x1c && u[0] <= 0x1f))
        return 1;
    if (n >= 2 && u[0] == 0xc2 && (u[1] == 0x85 || u[1] == 0xa0))
        return 2;
    if (n < 3)
        return 0;
    uint32_t cp = (uint32_t)u[0] << 16 | (uint32_t)u[1] << 8 | u[2];
    bool space = cp == 0xe19a80 || (cp >= 0xe28080 && cp <= 0xe2808a) || cp == 0xe280a8 ||
                 cp == 0xe280a9 || cp == 0xe280af || cp == 0xe2819f || cp == 0xe38080;
    return space ? 3 : 0;
}

/* Finds the next word at or after *at; false: none. */
static bool next_word(const char *p, size_t n, size_t *at, struct span *w)
{
    size_t k;
    while (*at < n && (k = space_at(p + *at, n - *at)) > 0)
        *at += k;
    size_t from = *at;
    while (*at < n && space_at(p + *at, n - *at) == 0)
        (*at)++;
    *w = (struct span){p + from, *at - from};
    return w->n > 0;
}

/* Strips closing quotes and brackets: ASCII ones, and two others that share their first bytes. */
static struct span strip_close(struct span w)
{
    for (;;) {
        if (w.n >= 1 && strchr("\"')]", w.p[w.n - 1]) && w.p[w.n - 1])
            w.n -= 1;
        else if (w.n >= 3 && (memcmp(w.p + w.n - 3, "\xe2\x80\x9d", 3) == 0 ||
                              memcmp(w.p + w.n - 3, "\xe2\x80\x99", 3) == 0))
            w.n -= 3;
        else
            return w;
    }
}

static struct span strip_open(struct span w)
{
    for (;;) {
        size_t k = 0;
        if (w.n >= 1 && *w.p && strchr("\"'([", *w.p))
            k = 1;
        else if (w.n >= 3 &&
                 (memcmp(w.p, "\xe2\x80\x9c", 3) == 0 || memcmp(w.p, "\xe2\x80\x98", 3) == 0))
            k = 3;
        if (k == 0)
            return w;
        w.p += k;
        w.n -= k;
    }
}

static bool is_abbreviation(const struct extract *x, struct span name)
{
    char low[64];
    uint32_t value;
    if (name.n == 1 && ascii_is_letter(*name.p))
        return true;
    if (name.n >= sizeof(low))
        return false;
    for (size_t i = 0; i < name.n; i++)
        low[i] = ascii_lower(name.p[i]);
    return strmap_get(&x->abbreviations, low, name.n, &value);
}

/* True if a sentence ends after word w when `next` follows. */
static bool ends_sentence(const struct extract *x, struct span w, struct span next)
{
    struct span core = strip_close(w), head = strip_open(next);
    if (core.n == 0 || !strchr(".!?", core.p[core.n - 1]) || head.n == 0)
        return false;
    unsigned char c = (unsigned char)*head.p;
    if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80))
        return false;
    if (core.p[core.n - 1] != '.')
        return true;
    core.n--;
    return !is_abbreviation(x, strip_open(core));
}

/* End of the paragraph that starts at `at`: an empty line, or the end of the text. */
static size_t paragraph_end(const char *p, size_t n, size_t at)
{
    for (; at < n; at++) {
        if (p[at] != '\n')
            continue;
        size_t k = at + 1;
        while (k < n && (p[k] == ' ' || p[k] == '\t' || p[k] == '\r'))
            k++;
        if (k < n && p[k] == '\n')
            return at;
    }
    return n;
}

static uint32_t count_chars(const char *p, size_t n)
{
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += ((unsigned char)p[i] & 0xc0) != 0x80;
    return k;
}

/* Appends the words of bytes from..to of a text to s[n], joined by single spaces; the new length.
 */
static size_t join_words(char *s, size_t n, const char *text, size_t from, size_t to)
{
    struct span w;
    while (from < to && next_word(text, to, &from, &w)) {
        if (n > 0)
            s[n++] = ' ';
        memcpy(s + n, w.p, w.n);
        n += w.n;
    }
    return n;
}

struct turn {             /* the turn whose sentences are being added */
    size_t from, n_label; /* the name and its colon in the text; 0 bytes: no name */
    uint32_t index;
};

/* Adds bytes from..to of the text as a sentence. */
static void add_sentence(struct extract_doc *d, const char *text, const struct turn *t, size_t from,
                         size_t to)
{
    char *s = arena_bytes(&d->arena, t->n_label + 1 + to - from + 1);
    if (!s)
        return;
    size_t label = join_words(s, 0, text, t->from, t->from + t->n_label);
    size_t n = join_words(s, label, text, from, to);
    s[n] = '\0';
    bool opens = d->n == 0 || d->sentences[d->n - 1].turn != t->index;
    d->sentences[d->n++] =
        (struct extract_sentence){.text = s,
                                  .n = n,
                                  .label = label,
                                  .turn = t->index,
                                  .start = (uint32_t)(opens && t->n_label > 0 ? t->from : from),
                                  .end = (uint32_t)to};
}

/* Adds the sentences of bytes from..end: a paragraph, or the speech of a turn. */
static void split_range(struct extract_doc *d, const struct extract *x, const char *text,
                        const struct turn *t, size_t at, size_t end)
{
    size_t from = 0, last = 0;
    struct span w, next;
    bool more = next_word(text, end, &at, &w), open = false;
    while (more && d->n < x->max_sentences) {
        if (!open)
            from = (size_t)(w.p - text);
        open = true;
        last = (size_t)(w.p - text) + w.n;
        more = next_word(text, end, &at, &next);
        if (more && ends_sentence(x, w, next)) {
            add_sentence(d, text, t, from, last);
            open = false;
        }
        w = next;
    }
    if (open && d->n < x->max_sentences)
        add_sentence(d, text, t, from, last);
}

static void split(struct extract_doc *d, const struct extract *x, const char *text, size_t n)
{
    const struct turn nobody = {0};
    for (size_t begin = 0, end; begin < n && d->n < x->max_sentences; begin = end + 1) {
        end = paragraph_end(text, n, begin);
        split_range(d, x, text, &nobody, begin, end);
    }
}

/* ---- dialogues ------------------------------------------------------------------------------ */

/* The next line with words at or after *at, without the white space around it; false: none. */
static bool next_line(const char *p, size_t n, size_t *at, struct span *line)
{
    while (*at < n) {
        const char *end = memchr(p + *at, '\n', n - *at);
        size_t to = end ? (size_t)(end - p) : n, from = *at, last = from;
        struct span w, first = {NULL, 0};
        while (next_word(p, to, &from, &w)) {
            if (!first.p)
                first = w;
            last = (size_t)(w.p - p) + w.n;
        }
        *at = to + 1;
        if (first.p) {
            *line = (struct span){first.p, last - (size_t)(first.p - p)};
            return true;
        }
    }
    return false;
}

/* The speaker that a line names before a colon and a space; an empty span: none. */
static struct span speaker_of(struct span line)
{
    size_t most = line.n < MAX_LABEL_BYTES + 1 ? line.n : MAX_LABEL_BYTES + 1;
    const char *colon = memchr(line.p, ':', most);
    size_t n = colon ? (size_t)(colon - line.p) : 0;
    if (n == 0 || (n + 1 < line.n && space_at(colon + 1, line.n - n - 1) == 0))
        return (struct span){line.p, 0};
    return (struct span){line.p, n};
}

static bool is_dialogue(const char *text, size_t n)
{
    struct span speakers[MAX_SPEAKERS], line;
    uint32_t lines = 0, turns = 0, known = 0;
    for (size_t at = 0; next_line(text, n, &at, &line); lines++) {
        struct span who = speaker_of(line);
        uint32_t i = 0;
        if (who.n == 0)
            continue;
        turns++;
        while (i < known && (speakers[i].n != who.n || memcmp(speakers[i].p, who.p, who.n) != 0))
            i++;
        if (i == MAX_SPEAKERS)
            return false;
        speakers[i] = who;
        known += i == known;
    }
    return lines >= MIN_TURNS && turns * 4 >= lines * 3 && known * 2 <= turns;
}

static void split_turns(struct extract_doc *d, const struct extract *x, const char *text, size_t n)
{
    struct span line;
    struct turn t = {0};
    for (size_t at = 0; d->n < x->max_sentences && next_line(text, n, &at, &line); t.index++) {
        struct span who = speaker_of(line);
        uint32_t before = d->n;
        t.from = (size_t)(line.p - text);
        t.n_label = who.n > 0 ? who.n + 1 : 0;
        split_range(d, x, text, &t, t.from + t.n_label, t.from + line.n);
        if (d->arena.rc < 0)
            return;
        if (d->n == before) /* a name without text */
            add_sentence(d, text, &t, t.from + t.n_label, t.from + line.n);
    }
}

/* The speech without the speaker's name. */
static struct span said(const struct extract_sentence *s)
{
    return (struct span){s->text + s->label, s->n - s->label};
}

/* ---- features ------------------------------------------------------------------------------- */

struct counts {          /* of content words */
    struct strmap words; /* word to index in n */
    uint32_t *n;
    uint32_t used, top;
    bool *in_title;
    uint32_t n_title;
};

/* Finds the next content word at or after *at and writes it to low in lower case; 0: none. */
static size_t next_content(const struct extract *x, const char *s, size_t n, size_t *at, char *low,
                           size_t cap)
{
    uint32_t value;
    while (*at < n) {
        size_t len = 0;
        for (; *at < n; (*at)++) {
            char c = ascii_lower(s[*at]);
            if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
                break;
            if (len < cap)
                low[len] = c;
            len++;
        }
        (*at)++;
        len = len < cap ? len : cap;
        if (len > 3 && !strmap_get(&x->stop_words, low, len, &value))
            return len;
    }
    return 0;
}

/* Index of a word in the counts, added if new; UINT32_MAX: out of memory. */
static uint32_t word_index(struct counts *c, struct arena *a, const char *low, size_t len)
{
    uint32_t i;
    if (strmap_get(&c->words, low, len, &i))
        return i;
    char *key = arena_copy(a, low, len);
    if (!key || strmap_put(&c->words, key, len, c->used) < 0)
        return UINT32_MAX;
    return c->used++;
}

static int count_words(struct counts *c, struct extract_doc *d, const struct extract *x,
                       const char *title, size_t n_title, struct err *e)
{
    char low[256];
    size_t most = n_title / 4 + 1, len;
    for (uint32_t i = 0; i < d->n; i++)
        most += said(&d->sentences[i]).n / 4 + 1;
    if (strmap_init(&c->words, most) < 0)
        return err_set(e, SHOAL_ENOMEM, "words");
    c->n = arena_zalloc_n(&d->arena, most, sizeof(*c->n));
    c->in_title = arena_zalloc_n(&d->arena, most, sizeof(*c->in_title));
    if (!c->n || !c->in_title)
        return err_set(e, d->arena.rc, "words");
    c->top = 1;
    for (uint32_t s = 0; s <= d->n; s++) {
        bool is_title = s == d->n;
        struct span in = is_title ? (struct span){title, n_title} : said(&d->sentences[s]);
        for (size_t at = 0; (len = next_content(x, in.p, in.n, &at, low, sizeof(low))) > 0;) {
            uint32_t i = word_index(c, &d->arena, low, len);
            if (i == UINT32_MAX)
                return err_set(e, SHOAL_ENOMEM, "words");
            if (is_title) {
                c->n_title += !c->in_title[i];
                c->in_title[i] = true;
            } else if (++c->n[i] > c->top) {
                c->top = c->n[i];
            }
        }
    }
    return 0;
}

/* Features frequency, title and content of a sentence; seen: per word, s + 1 if sentence s has it.
 */
static void word_features(struct extract_sentence *s, const struct extract *x, struct counts *c,
                          uint32_t *seen, uint32_t mark)
{
    char low[256];
    size_t len, n_words = 0;
    uint32_t titles = 0, distinct = 0, i = 0;
    struct span in = said(s);
    double sum = 0.0;
    for (size_t at = 0; (len = next_content(x, in.p, in.n, &at, low, sizeof(low))) > 0;) {
        if (!strmap_get(&c->words, low, len, &i))
            continue;
        sum += c->n[i];
        n_words++;
        distinct += seen[i] != mark;
        titles += c->in_title[i] && seen[i] != mark;
        seen[i] = mark;
    }
    s->features[FREQUENCY] = n_words ? sum / ((double)n_words * c->top) : 0.0;
    s->features[TITLE] = c->n_title ? (double)titles / c->n_title : 0.0;
    s->features[CONTENT] =
        (double)(distinct < ENOUGH_CONTENT ? distinct : ENOUGH_CONTENT) / ENOUGH_CONTENT;
}

static void shape_features(struct extract_sentence *s, const struct extract *x, uint32_t i,
                           uint32_t n)
{
    char first[64];
    size_t at = 0, n_words = 0, n_first = 0;
    uint32_t value;
    struct span w, in = said(s);
    while (next_word(in.p, in.n, &at, &w)) {
        for (size_t k = 0; n_words == 0 && k < w.n; k++)
            if (ascii_is_letter(w.p[k]) && n_first < sizeof(first))
                first[n_first++] = ascii_lower(w.p[k]);
        n_words++;
    }
    struct span core = strip_close(in);
    s->features[START] = 1.0 / (1.0 + i);
    s->features[POSITION] = n > 1 ? (double)i / (n - 1) : 0.0;
    s->features[LENGTH] = (double)(n_words < 40 ? n_words : 40) / 40.0;
    s->features[SHORT] = n_words < 6;
    s->features[DIGIT] = strcspn(in.p, "0123456789") < in.n;
    s->features[BACKWARD] = strmap_get(&x->backward_words, first, n_first, &value);
    s->features[FIRST] = i == 0;
    s->features[QUESTION] = core.n > 0 && core.p[core.n - 1] == '?';
}

int extract_doc_create(struct extract_doc **out, const struct extract *x, const char *text,
                       size_t n, const char *title, size_t n_title, struct err *e)
{
    *out = NULL;
    struct extract_doc *d = mem_zalloc(sizeof(*d));
    struct counts c = {0};
    if (!d)
        return err_set(e, SHOAL_ENOMEM, "document");
    arena_init(&d->arena, DOC_BYTES);
    d->sentences = arena_zalloc_n(&d->arena, x->max_sentences, sizeof(*d->sentences));
    d->dialogue = is_dialogue(text, n);
    if (d->sentences && d->dialogue)
        split_turns(d, x, text, n);
    else if (d->sentences)
        split(d, x, text, n);
    int rc =
        d->arena.rc < 0 ? err_set(e, d->arena.rc, "cannot hold a document of %zu bytes", n) : 0;
    if (rc == 0)
        rc = count_words(&c, d, x, title ? title : "", title ? n_title : 0, e);
    uint32_t *seen = rc == 0 ? arena_zalloc_n(&d->arena, c.used + 1u, sizeof(*seen)) : NULL;
    if (rc == 0 && !seen)
        rc = err_set(e, d->arena.rc, "cannot hold a document of %zu bytes", n);
    uint32_t chars = 0, at = 0;
    for (uint32_t i = 0; rc == 0 && i < d->n; i++) {
        struct extract_sentence *s = &d->sentences[i];
        s->start_char = chars + count_chars(text + at, s->start - at);
        s->end_char = chars = s->start_char + count_chars(text + s->start, s->end - s->start);
        at = s->end;
        shape_features(s, x, i, d->n);
        word_features(s, x, &c, seen, i + 1);
    }
    strmap_fini(&c.words);
    if (rc < 0) {
        extract_doc_destroy(d);
        return rc;
    }
    *out = d;
    return 0;
}

void extract_doc_destroy(struct extract_doc *d)
{
    if (!d)
        return;
    arena_fini(&d->arena);
    mem_free(d);
}

/* ---- choosing ------------------------------------------------------------------------------- */

static double dot(const float *a, const float *b, uint32_t n)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

static void score_all(const struct extract *x, struct extract_doc *d, const float *vectors,
                      uint32_t dim, float *mean)
{
    const struct extract_weights *w = d->dialogue ? &x->dialogue : &x->prose;
    double length = 0.0;
    for (uint32_t k = 0; k < dim; k++) {
        double sum = 0.0;
        for (uint32_t i = 0; i < d->n; i++)
            sum += (double)vectors[(size_t)i * dim + k];
        mean[k] = (float)(sum / d->n);
        length += (double)mean[k] * (double)mean[k];
    }
    length = sqrt(length) > 1e-12 ? sqrt(length) : 1e-12;
    for (uint32_t i = 0; i < d->n; i++) {
        struct extract_sentence *s = &d->sentences[i];
        s->features[CENTROID] = dot(vectors + (size_t)i * dim, mean, dim) / length;
        s->score = w->bias;
        for (uint32_t k = 0; k < EXTRACT_FEATURES; k++)
            s->score += w->of[k] * s->features[k];
    }
}

uint32_t extract_count(const struct extract *x, const struct extract_doc *d, uint32_t k)
{
    k = k ? k : x->n_sentences;
    return k < d->n ? k : d->n;
}

size_t extract_append(char *summary, size_t n, const struct extract_sentence *before,
                      const struct extract_sentence *s)
{
    bool goes_on = before && s->label > 0 && before->turn == s->turn;
    size_t skip = goes_on ? s->label : 0;
    if (goes_on && s->text[skip] == ' ')
        skip++;
    if (before)
        summary[n++] = ' ';
    memcpy(summary + n, s->text + skip, s->n - skip);
    return n + s->n - skip;
}

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void extract_choose(const struct extract *x, struct extract_doc *d, const float *vectors,
                    uint32_t dim, uint32_t k, float *mean, uint32_t *chosen)
{
    const double redundancy = d->dialogue ? x->dialogue.redundancy : x->prose.redundancy;
    k = extract_count(x, d, k);
    if (d->n == 0)
        return;
    score_all(x, d, vectors, dim, mean);
    for (uint32_t n = 0; n < k; n++) {
        double best = -INFINITY;
        for (uint32_t i = 0; i < d->n; i++) {
            double near = 0.0, value;
            bool taken = false;
            for (uint32_t j = 0; j < n; j++) {
                taken |= chosen[j] == i;
                if (redundancy > 0.0) {
                    double is =
                        dot(vectors + (size_t)i * dim, vectors + (size_t)chosen[j] * dim, dim);
                    near = j == 0 || is > near ? is : near;
                }
            }
            value = d->sentences[i].score - redundancy * near;
            if (!taken && (value > best || best == -INFINITY)) {
                best = value;
                chosen[n] = i;
            }
        }
    }
    qsort(chosen, k, sizeof(*chosen), by_place);
}

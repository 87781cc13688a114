/* support.c - see support.h. */
#include "knowledge/support.h"

#include <string.h>
#include <strings.h>

#include "base/ascii.h"
#include "base/str.h"
#include "knowledge/quote_split.h"
#include "knowledge/wording.h"

#define ENOUGH 0.6 /* share of words, without vectors */
#define SOME 0.35  /* share of words, if the vectors are close: NEAR */
#define NEAR 0.6f
#define SAME 0.75       /* share of common words: the sentences say the same */
#define SAID 0.75       /* required share of what an answer adds in a passage's sentence */
#define ASKED 0.65      /* share of the question's words that it must be about */
#define MAX_BYTES 4096u /* limit of a sentence */
#define PASSAGE_BYTES 16384u

const char *support_verdict_name(enum support_verdict v)
{
    static const char *const names[] = {"false", "partly", "true"};
    return names[v];
}

const char *support_reason_text(enum support_reason r)
{
    static const char *const texts[] = {"",
                                        "a number that no passage has",
                                        "a name that no passage has",
                                        "a passage says the opposite",
                                        "the passages do not say this",
                                        "it repeats itself",
                                        "it does not answer the question"};
    return texts[r];
}

/* ---- sentences ---- */

/* Length of "[12]" or "[1, 2]" at p; 0: no mark. */
static size_t mark_bytes(const char *p, size_t n)
{
    size_t i = 1;
    if (n < 3 || p[0] != '[')
        return 0;
    while (i < n && (strchr("0123456789, ", p[i]) && p[i]))
        i++;
    return i > 1 && i < n && p[i] == ']' ? i + 1 : 0;
}

static bool has_letter(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ascii_is_letter(p[i]) || (p[i] & 0x80))
            return true;
    return false;
}

static bool ends_at(const char *p, size_t n, size_t i)
{
    bool stop = p[i] == '.' || p[i] == '!' || p[i] == '?';
    size_t k = i + 1;
    while (stop && k < n && (p[k] == ' ' || mark_bytes(p + k, n - k)))
        k += p[k] == ' ' ? 1 : mark_bytes(p + k, n - k);
    /* "3.5" and "e.g. this" do not end a sentence */
    return p[i] == '\n' ||
           (stop && (i + 1 == n || p[i + 1] == ' ' || p[i + 1] == '\n' || p[i + 1] == '[') &&
            (k == n || p[k] == '\n' || ascii_is_upper(p[k]) || ascii_is_digit(p[k]) ||
             (p[k] & 0x80)));
}

void support_split(struct support *s, const char *answer, size_t n)
{
    size_t from = 0;
    s->n = 0;
    for (size_t i = 0; i < n && s->n < SUPPORT_MAX_SENTENCES; i++) {
        if (!ends_at(answer, n, i) && i + 1 < n)
            continue;
        size_t end = i + 1;
        if (end - from > 1 && has_letter(answer + from, end - from))
            s->sentences[s->n++] =
                (struct support_sentence){.at = from, .n = end - from, .passage = -1};
        from = end;
    }
}

/* ---- one sentence ---- */

/* Without the marks of citations. */
static void read_sentence(struct wording *w, const char *p, size_t n)
{
    char text[MAX_BYTES];
    size_t k = 0;
    for (size_t i = 0; i < n && k < sizeof(text);) {
        size_t mark = mark_bytes(p + i, n - i);
        if (mark == 0)
            text[k++] = p[i];
        i += mark ? mark : 1;
    }
    wording_read(w, text, k);
}

static bool counts(const struct wording_word *x)
{
    return x->kind == WORDING_PLAIN || x->kind == WORDING_PARTICLE;
}

/* Share of the words of a that b has. */
static double overlap_of(const struct wording *a, const struct wording *b)
{
    uint32_t n = 0, there = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!counts(&a->words[i]))
            continue;
        n++;
        there += wording_has(b, a->words[i].kind, a->words[i].stem);
    }
    return n ? (double)there / n : 1;
}

/* A number or name in a that is missing in b. */
static enum support_reason missing_in(const struct wording *a, const struct wording *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->words[i].kind == WORDING_NUMBER && !wording_has(b, WORDING_NUMBER, a->words[i].stem))
            return SUPPORT_NUMBER;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->words[i].name && !wording_has(b, WORDING_PLAIN, a->words[i].stem))
            return SUPPORT_NAME;
    return SUPPORT_FINE;
}

/* Compares with the nearest sentence of the passage: it may be the negation, and if it says nearly
 * the same, numbers and names must be in it: "E3 means that the sensor is broken" is not what "E1
 * means that the sensor is broken. E3 means ..." says. */
static enum support_reason nearest_says(const struct wording *a, const char *passage)
{
    struct support parts;
    struct wording w;
    double best = 0;
    bool opposite = false;
    enum support_reason missing = SUPPORT_FINE;
    support_split(&parts, passage, strlen(passage));
    for (uint32_t i = 0; i < parts.n; i++) {
        wording_read(&w, passage + parts.sentences[i].at, parts.sentences[i].n);
        double share = overlap_of(a, &w);
        if (share <= best)
            continue;
        best = share;
        opposite = (wording_count(a, WORDING_NEGATION) + wording_count(&w, WORDING_NEGATION)) % 2;
        missing = missing_in(a, &w);
    }
    if (best >= 0.5 && opposite)
        return SUPPORT_NEGATED;
    return best >= SAME ? missing : SUPPORT_FINE;
}

/* ---- codes ---- */

/* "usb_driver", "E12", "--with-user": written as they are, or wrong.  "20kg" and "2nd" are numbers.
 */
static bool is_code(const char *p, size_t n)
{
    bool letter = false, mixed = false;
    for (size_t i = 0; i < n; i++) {
        mixed |= letter && ascii_is_digit(p[i]);
        letter |= ascii_is_letter(p[i]);
    }
    return letter && (mixed || memchr(p, '_', n) || (n > 2 && p[0] == '-' && p[1] == '-'));
}

/* Whether text has the code as a whole. */
static bool has_code(const char *text, const char *p, size_t n)
{
    for (const char *at = text; *at; at++)
        if (strncasecmp(at, p, n) == 0 &&
            (at == text || !(ascii_is_letter(at[-1]) || ascii_is_digit(at[-1]) || at[-1] == '_')) &&
            !(ascii_is_letter(at[n]) || ascii_is_digit(at[n]) || at[n] == '_'))
            return true;
    return false;
}

static bool codes_are_in(const char *text, const char *sentence, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = i;
        while (k < n && (ascii_is_letter(sentence[k]) || ascii_is_digit(sentence[k]) ||
                         sentence[k] == '_' || sentence[k] == '-'))
            k++;
        if (k > i && is_code(sentence + i, k - i) && !has_code(text, sentence + i, k - i))
            return false;
        i = k > i ? k : i + 1;
    }
    return true;
}

/* Three words that occur three times. */
static bool repeats_itself(const struct wording *a)
{
    for (uint32_t i = 0; i + 2 < a->n; i++) {
        uint32_t times = 0;
        for (uint32_t k = i; k + 2 < a->n; k++)
            times += strcmp(a->words[i].stem, a->words[k].stem) == 0 &&
                     strcmp(a->words[i + 1].stem, a->words[k + 1].stem) == 0 &&
                     strcmp(a->words[i + 2].stem, a->words[k + 2].stem) == 0;
        if (times >= 3)
            return true;
    }
    return false;
}

static struct str without_blanks(const char *answer, const struct support_sentence *x)
{
    struct str t = {answer + x->at, x->n};
    while (t.n > 0 && (*t.p == ' ' || *t.p == '\n')) {
        t.p++;
        t.n--;
    }
    return t;
}

/* The same sentence as one before. */
static bool is_repeated(const struct support *s, const char *answer, uint32_t at)
{
    const struct str x = without_blanks(answer, &s->sentences[at]);
    for (uint32_t i = 0; i < at; i++) {
        const struct str y = without_blanks(answer, &s->sentences[i]);
        if (x.n == y.n && strncasecmp(x.p, y.p, x.n) == 0)
            return true;
    }
    return false;
}

static enum support_reason judge_by(const struct wording *a, const struct wording *passage,
                                    const char *text, const struct str sentence,
                                    const float *similarity, double *overlap)
{
    *overlap = overlap_of(a, passage);
    enum support_reason why = missing_in(a, passage);
    if (why != SUPPORT_FINE)
        return why;
    if (!codes_are_in(text, sentence.p, sentence.n))
        return SUPPORT_NAME;
    bool near = similarity && *similarity >= NEAR;
    if (*overlap < (near ? SOME : ENOUGH))
        return SUPPORT_UNRELATED;
    return nearest_says(a, text);
}

/* A passage without lines of a table of contents: their titles say nothing. out is used if there
 * are any; what is beyond it is left out. */
static const char *without_contents(char out[PASSAGE_BYTES], const char *passage)
{
    size_t n = strlen(passage), k = 0;
    if (!quote_is_contents(passage, n))
        return passage;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(passage + at, '\n', n - at);
        size_t line = end ? (size_t)(end - passage) + 1 - at : n - at;
        if (!quote_is_contents(passage + at, line) && k + line < PASSAGE_BYTES) {
            memcpy(out + k, passage + at, line);
            k += line;
        }
        at += line;
    }
    out[k] = '\0';
    return out;
}

void support_judge(struct support *s, const char *answer, const char *const *passages,
                   uint32_t n_passages, const float *similarity)
{
    struct wording a, b;
    char text[PASSAGE_BYTES];
    uint32_t good = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        struct support_sentence *x = &s->sentences[i];
        double best = -1;
        read_sentence(&a, answer + x->at, x->n);
        x->reason = SUPPORT_UNRELATED;
        x->supported = false;
        for (uint32_t k = 0; k < n_passages && k < SUPPORT_MAX_PASSAGES; k++) {
            double overlap;
            const char *passage = without_contents(text, passages[k]);
            wording_read(&b, passage, strlen(passage));
            enum support_reason why =
                judge_by(&a, &b, passage, (struct str){answer + x->at, x->n},
                         similarity ? &similarity[i * n_passages + k] : NULL, &overlap);
            bool fine = why == SUPPORT_FINE;
            if ((fine && !x->supported) || (fine == x->supported && overlap > best)) {
                best = overlap;
                x->supported = fine;
                x->reason = why;
                x->overlap = overlap;
                x->passage = fine ? (int32_t)k : -1;
            }
        }
        if (x->supported && quote_is_contents(answer + x->at, x->n)) {
            x->supported = false;
            x->reason = SUPPORT_UNRELATED;
            x->passage = -1;
        } else if (x->supported && (repeats_itself(&a) || is_repeated(s, answer, i))) {
            x->supported = false;
            x->reason = SUPPORT_REPEATED;
            x->passage = -1;
        }
        good += x->supported;
    }
    s->verdict = s->n > 0 && good == s->n ? SUPPORT_TRUE
                 : good > 0               ? SUPPORT_PARTLY
                                          : SUPPORT_FALSE;
}

/* ---- the question ---- */

/* Words without information: in questions ("how often", "which is used"), and in answers about
 * themselves ("the answer is", "the manual says"). */
static bool is_vague(const char *stem)
{
    static const char *const words[] = {
        "use",      "have",   "mean",   "often",   "long",    "much",     "many",
        "do",       "get",    "make",   "take",    "happen",  "need",     "answer",
        "question", "manual", "text",   "passage", "say",     "sentence", "recommend",
        "call",     "name",   "person", "people",  "someone", "thing",    "one"};
    char word[WORDING_STEM_BYTES];
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        memcpy(word, words[i], strlen(words[i]) + 1);
        wording_stem(word);
        if (strcmp(wording_same(word), stem) == 0)
            return true;
    }
    return false;
}

static bool has_meaning(const struct wording *of, uint32_t i)
{
    const struct wording_word *x = &of->words[i];
    return x->kind == WORDING_NUMBER || (x->kind == WORDING_PLAIN && !is_vague(x->stem));
}

/* "Can I ...", "Is it ...": the answer may repeat the words of the question. */
static bool is_yes_or_no(const struct wording *q)
{
    return q->n > 0 && wording_count(q, WORDING_QUESTION) == 0 &&
           q->words[0].kind != WORDING_PLAIN && q->words[0].kind != WORDING_NUMBER;
}

struct shares {
    uint32_t n, there;
};

static double share_of(struct shares s)
{
    return s.n > 0 ? (double)s.there / s.n : 1;
}

/* Share of the answer's additions to the question that a passage sentence contains. */
static struct shares said_by(const struct wording *sentence, const struct wording *a,
                             const struct wording *q)
{
    struct shares s = {0};
    for (uint32_t i = 0; i < a->n; i++) {
        const struct wording_word *x = &a->words[i];
        if (!has_meaning(a, i) || wording_has(q, x->kind, x->stem))
            continue;
        s.n++;
        s.there += wording_has(sentence, x->kind, x->stem);
    }
    return s;
}

/* What a sentence is about: itself, the one before, and the heading. */
struct place {
    struct wording sentence, before, heading;
};

static bool is_about(const struct place *p, const struct wording_word *x)
{
    if (wording_has(&p->sentence, x->kind, x->stem) || wording_has(&p->heading, x->kind, x->stem))
        return true;
    /* "Holiday mode keeps the water at 15 degrees" is not about Eco mode, which the sentence before
     * names */
    return !x->name && x->kind != WORDING_NUMBER && wording_has(&p->before, x->kind, x->stem);
}

static bool fits_question(const struct place *p, const struct wording *q)
{
    struct shares s = {0};
    for (uint32_t i = 0; i < q->n; i++) {
        const struct wording_word *x = &q->words[i];
        if (!has_meaning(q, i))
            continue;
        const bool there = is_about(p, x);
        if (!there && (x->name || x->kind == WORDING_NUMBER))
            return false;
        s.n++;
        s.there += there;
    }
    return share_of(s) >= ASKED;
}

/* Searches for a passage sentence that is about the question and says what the answer says. */
static bool answers_in(const struct wording *a, const struct wording *q, const char *passage)
{
    struct support parts;
    struct place p;
    const bool yes_or_no = is_yes_or_no(q);
    support_split(&parts, passage, strlen(passage));
    for (uint32_t i = 0; i < parts.n; i++) {
        const struct support_sentence *x = &parts.sentences[i];
        p.before = i > 0 ? p.sentence : (struct wording){.n = 0};
        wording_read(&p.sentence, passage + x->at, x->n);
        if (i == 0)
            p.heading = p.sentence;
        const struct shares said = said_by(&p.sentence, a, q);
        if ((said.n > 0 || yes_or_no) && share_of(said) >= SAID && fits_question(&p, q))
            return true;
    }
    return false;
}

/* Whether compound words such as "usbhid-ups" occur in the passage unchanged. */
static bool joined_are_in(const char *text, const char *p, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t k = i;
        while (k < n &&
               (ascii_is_letter(p[k]) || ascii_is_digit(p[k]) || p[k] == '_' || p[k] == '-'))
            k++;
        if (k > i + 2 && memchr(p + i + 1, '-', k - i - 2) && !has_code(text, p + i, k - i))
            return false;
        i = k > i ? k : i + 1;
    }
    return true;
}

void support_answers(struct support *s, const char *answer, const char *question, size_t n,
                     const char *const *passages)
{
    struct wording a, q;
    bool answered = false;
    wording_read(&q, question, n);
    for (uint32_t i = 0; i < s->n && !answered; i++) {
        const struct support_sentence *x = &s->sentences[i];
        if (!x->supported || x->passage < 0)
            continue;
        read_sentence(&a, answer + x->at, x->n);
        answered = joined_are_in(passages[x->passage], answer + x->at, x->n) &&
                   answers_in(&a, &q, passages[x->passage]);
    }
    if (answered)
        return;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->sentences[i].supported) {
            s->sentences[i].supported = false;
            s->sentences[i].reason = SUPPORT_UNANSWERED;
            s->sentences[i].passage = -1;
        }
    s->verdict = SUPPORT_FALSE;
}

/* whisper_rules.c - see whisper_rules.h; the rules are those of OpenAI's decoder. */
#include "engine/native/whisper_rules.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "kernels/kern.h"
#include "text/tokenizer/tokenizer.h"

#define LATEST_START 1.0 /* seconds: a text begins there at the latest */
#define ENGLISH_VOCAB 51864u
#define LISTED 30u /* languages in a message */
#define NEVER 1u
#define NOT_FIRST 2u

/* ---- the vocabulary ---- */

static int32_t find(const struct tokenizer *t, const char *name)
{
    return tokenizer_find(t, name, strlen(name));
}

/* Languages are <|xx|>, one after the other behind the start. */
static void find_languages(struct whisper_rules *r, const struct tokenizer *t, int32_t start)
{
    for (int32_t id = start + 1; id < r->task[1] && r->n_languages < WHISPER_RULES_LANGUAGES;
         id++) {
        const struct str s = tokenizer_piece(t, id, TOKENIZER_RENDER_SPECIAL);
        if (s.n < 6 || s.n > 4 + sizeof(r->name[0]) - 1)
            continue;
        memcpy(r->name[r->n_languages], s.p + 2, s.n - 4);
        r->language[r->n_languages++] = id;
    }
}

/* A mark that is one token, alone or behind a space, is never written; the notes of music always
 * begin with the same. */
static int forbid(struct whisper_rules *r, const struct tokenizer *t, const char *mark, bool music,
                  struct err *e)
{
    char text[16];
    struct tok_ids ids;
    int rc = 0;
    tok_ids_init(&ids, 16);
    for (int space = 0; rc == 0 && space < 2; space++) {
        const int n = snprintf(text, sizeof(text), "%s%s", space ? " " : "", mark);
        ids.n = 0;
        rc = tokenizer_encode(t, &ids, text, (size_t)n, 0, e);
        if (rc == 0 && ids.n > 0 && (ids.n == 1 || music))
            r->never[ids.ids[0]] = NEVER;
    }
    tok_ids_fini(&ids);
    return rc;
}

static int forbid_marks(struct whisper_rules *r, const struct tokenizer *t, struct err *e)
{
    static const char *const marks[] = {
        "\"",  "#",  "(",  ")",   "*",   "+",   "/",   ":",  ";",   "<",  "=",  ">",
        "@",   "[",  "\\", "]",   "^",   "_",   "`",   "{",  "|",   "}",  "~",  "「",
        "」",  "『", "』", "<<",  ">>",  "<<<", ">>>", "--", "---", "-(", "-[", "('",
        "(\"", "((", "))", "(((", ")))", "[[",  "]]",  "{{", "}}",  "♪♪", "♪♪♪"};
    static const char *const music[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof(marks) / sizeof(marks[0]); i++)
        rc = forbid(r, t, marks[i], false, e);
    for (size_t i = 0; rc == 0 && i < sizeof(music) / sizeof(music[0]); i++)
        rc = forbid(r, t, music[i], true, e);
    return rc;
}

/* "-" and "'" are part of words, but not at the beginning of one; a text does not begin with a
 * space. */
static int forbid_beginnings(struct whisper_rules *r, const struct tokenizer *t, struct err *e)
{
    static const char *const texts[] = {" -", " '", " "};
    struct tok_ids ids;
    int rc = 0;
    tok_ids_init(&ids, 16);
    for (size_t i = 0; rc == 0 && i < 3; i++) {
        ids.n = 0;
        rc = tokenizer_encode(t, &ids, texts[i], strlen(texts[i]), 0, e);
        if (rc == 0 && ids.n > 0)
            r->never[ids.ids[0]] = i < 2 ? NEVER : NOT_FIRST;
    }
    tok_ids_fini(&ids);
    return rc;
}

static int fill(struct whisper_rules *r, const struct tokenizer *t, struct err *e)
{
    const int32_t start = find(t, "<|startoftranscript|>"), stop = find(t, "<|notimestamps|>");
    r->end = find(t, "<|endoftext|>");
    r->task[0] = find(t, "<|transcribe|>");
    r->task[1] = find(t, "<|translate|>");
    r->no_speech = find(t, "<|nospeech|>");
    if (r->no_speech < 0)
        r->no_speech = find(t, "<|nocaptions|>");
    if (start < 0 || stop < 0 || r->end < 0 || r->end > start || stop < start ||
        (uint32_t)stop + 1 >= r->n_vocab || tokenizer_info(t)->n_vocab > r->n_vocab)
        return err_set(e, SHOAL_EFORMAT,
                       "the vocabulary has no tokens for the start, the end and the times of a "
                       "text: convert the model again, with its tokenizer");
    r->first_time = stop + 1;
    if (r->n_vocab != ENGLISH_VOCAB) /* that one has the tokens, but has not learned them */
        find_languages(r, t, start);
    r->never = mem_zalloc(r->n_vocab);
    if (!r->never)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary");
    for (int32_t id = r->end + 1; id < r->first_time; id++)
        r->never[id] = NEVER;
    int rc = forbid_marks(r, t, e);
    return rc < 0 ? rc : forbid_beginnings(r, t, e);
}

int whisper_rules_create(struct whisper_rules **out, const struct tokenizer *t, uint32_t n_vocab,
                         struct err *e)
{
    struct whisper_rules *r = mem_zalloc(sizeof(*r));
    *out = NULL;
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a vocabulary");
    r->n_vocab = n_vocab;
    const int rc = fill(r, t, e);
    if (rc < 0)
        whisper_rules_destroy(r);
    else
        *out = r;
    return rc;
}

void whisper_rules_destroy(struct whisper_rules *r)
{
    if (r)
        mem_free(r->never);
    mem_free(r);
}

/* ---- asking ---- */

static int unknown_language(const struct whisper_rules *r, const char *wanted, struct err *e)
{
    char known[160] = "en";
    size_t n = 0;
    for (uint32_t i = 0; i < r->n_languages && i < LISTED; i++)
        n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", n ? " " : "", r->name[i]);
    return err_set(e, SHOAL_EINVAL, "the model does not hear the language '%.20s'; it hears: %s%s",
                   wanted, known, r->n_languages > LISTED ? " and others" : "");
}

int whisper_rules_asked(const struct whisper_rules *r, const char *wanted, uint32_t *language,
                        bool *translate, struct err *e)
{
    const char *text = wanted ? wanted : "", *to = strchr(text, '>');
    const size_t n = to ? (size_t)(to - text) : strlen(text);
    *language = UINT32_MAX;
    *translate = to != NULL;
    if (to && strcmp(to, ">en") != 0)
        return err_set(e, SHOAL_EINVAL, "'%.20s': a translation is always into English (>en)",
                       text);
    if (to && r->n_languages == 0)
        return err_set(e, SHOAL_EINVAL,
                       "this model hears English only and does not translate: use one without "
                       "'.en' in its name");
    if (n == 0 || (r->n_languages == 0 && n == 2 && memcmp(text, "en", 2) == 0))
        return 0;
    for (uint32_t i = 0; i < r->n_languages; i++)
        if (strlen(r->name[i]) == n && memcmp(r->name[i], text, n) == 0) {
            *language = i;
            return 0;
        }
    return unknown_language(r, text, e);
}

uint32_t whisper_rules_heard(const struct whisper_rules *r, const float *logits)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < r->n_languages; i++)
        if (logits[r->language[i]] > logits[r->language[best]])
            best = i;
    return best;
}

/* ---- writing ---- */

static void forbid_range(float *logits, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++)
        logits[i] = -INFINITY;
}

/* Times come in pairs, the end of a part and the start of the next, and never go back. */
static void order_times(const struct whisper_rules *r, float *logits, const int32_t *tokens,
                        uint32_t n, double seconds)
{
    const int32_t stop = (int32_t)r->n_vocab;
    const bool was_time = n > 0 && whisper_rules_is_time(r, tokens[n - 1]);
    const bool pair = was_time && (n < 2 || whisper_rules_is_time(r, tokens[n - 2]));
    const double last = (seconds < LATEST_START || n > 0 ? seconds : LATEST_START);
    int32_t latest = r->first_time + (int32_t)(last / WHISPER_RULES_STEP + 1.5), from = -1;
    if (pair)
        forbid_range(logits, r->first_time, stop);
    else if (was_time)
        forbid_range(logits, 0, r->end);
    for (uint32_t i = n; i-- > 0 && from < 0;)
        if (whisper_rules_is_time(r, tokens[i])) /* a part has a length */
            from = tokens[i] + (was_time && !pair ? 0 : 1);
    if (from > 0)
        forbid_range(logits, r->first_time, from);
    if (n == 0)
        forbid_range(logits, 0, r->first_time);
    latest = latest > from ? latest : from + 1;
    if (latest < stop)
        forbid_range(logits, latest, stop);
}

void whisper_rules_apply(const struct whisper_rules *r, const struct kern_ops *k, float *logits,
                         const int32_t *tokens, uint32_t n, double seconds, float *tmp)
{
    const uint32_t n_text = (uint32_t)r->first_time, n_times = r->n_vocab - n_text;
    for (uint32_t i = 0; i < n_text; i++)
        if (r->never[i] == NEVER || (r->never[i] == NOT_FIRST && n <= 1))
            logits[i] = -INFINITY;
    order_times(r, logits, tokens, n, seconds);
    /* Where a time is likelier than any text, there is one. */
    const float *times = logits + n_text;
    const float top = times[k->argmax(times, n_times)], text = logits[k->argmax(logits, n_text)];
    if (isfinite(top) && isfinite(text) &&
        (double)top + log((double)k->softmax_exp(tmp, times, n_times, top)) > (double)text)
        forbid_range(logits, 0, (int32_t)n_text);
}

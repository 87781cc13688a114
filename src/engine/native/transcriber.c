/* transcriber.c - see transcriber.h. */
#include "engine/native/transcriber.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/batcher.h"
#include "engine/decode/kv_pages.h"
#include "engine/decode/sampler.h"
#include "engine/memory_plan.h"
#include "engine/native/phrases.h"
#include "engine/native/t5_engine.h"
#include "engine/native/whisper_rules.h"
#include "engine/native/word_times.h"
#include "engine/task.h"
#include "model/t5.h"
#include "score/vad.h"
#include "text/tokenizer/tokenizer.h"

#define DEFAULT_MAX_JOBS 4u
#define DRAFTED 12u           /* rows of a pass for tokens that are guessed */
#define TOKENS_PER_SECOND 6.5 /* nobody speaks faster; what is above is invented */
#define LEAST_TOKENS 8u
#define SILENCE 8 /* peak of the samples: the noise of a digital recording of nothing */
#define LONGEST_LOOP 8u
/* A single word that is cut tight is heard better with some silence around it. */
#define SHORT_SOUND T5_SAMPLE_RATE
#define SHORT_BEFORE (T5_SAMPLE_RATE / 5)
#define SHORT_AFTER (T5_SAMPLE_RATE * 3 / 10)
#define LONG_PAUSE (T5_SAMPLE_RATE / 2)      /* at the ends of a sound: it is cut */
#define KEPT_PAUSE (T5_SAMPLE_RATE * 3 / 10) /* so much of it stays */
#define LEAST_SURE                                                                                 \
    (-0.7) /* mean log-probability of the tokens so far: below it phrases do not begin */
#define MAX_TEXT_BYTES ((size_t)1 << 20)
/* Whisper; the thresholds are OpenAI's. */
#define WHISPER_PER_SECOND 15.0 /* other scripts need more tokens */
#define WHISPER_MOST_TOKENS 224u
#define TARGET_MOST 1024u /* of others: more are not said in 30 seconds */
#define MOST_SECONDS 30
#define LEAST_LOGPROB (-1.0) /* mean: below it a text is tried again */
#define NO_SPEECH 0.6
#define ATTEMPTS 5u   /* after the first */
#define WARMER 0.2f   /* temperature of each */
#define READ_AGAIN 6u /* tokens around a text that is read again for the times of its words */

struct recognizer {
    const struct model_file *file; /* borrowed from the engine, like the tokenizer */
    const struct tokenizer *tokenizer;
    struct t5 *t5;
    struct vad *vad;             /* NULL: the file has none */
    struct whisper_rules *rules; /* NULL: not Whisper */
    int32_t end;                 /* token */
    uint32_t max_jobs, n_pages, max_tokens;
    size_t kv_bytes;
    uint8_t *kv;
    /* the engine's thread only */
    struct kv_pages *pages;
    float *row;   /* [n_vocab] */
    float *ruled; /* [n_vocab], of Whisper: logits of what may be written */
    float *sound; /* [most samples] */
    uint32_t pages_promised;
    struct job **active; /* [max_jobs] */
    struct t5_row *rows; /* [max_jobs + DRAFTED] */
    uint32_t n_active;
};

struct input {              /* of a job */
    uint32_t from, n;       /* samples that are heard */
    uint32_t before, after; /* zeros around them */
    uint32_t n_frames, n_source_pages, need, max_tokens;
    uint32_t n_prefix;          /* tokens behind the start that say how to write */
    uint32_t n_tokens, n_pages; /* those and what was written; pages taken for them */
    uint32_t *source_pages;     /* [n_source_pages], followed by the pages of the target */
    uint32_t *pages;
    int32_t *tokens;         /* [max_tokens + 2], the first is the start */
    double logprob;          /* sum */
    struct phrases *phrases; /* or NULL */
    struct phrases_place place;
    bool helped; /* a word of a phrase was begun at helped_at tokens, and is not complete */
    uint32_t helped_at, plain_until; /* plain_until: before so many tokens no phrase begins */
    double helped_logprob;
    struct tok_ids draft;       /* the text may begin so: several of its tokens are tried at once */
    uint32_t first_row, n_rows; /* in the present pass */
    double *spans;              /* of speech: start and end, in seconds */
    struct buf text;
    /* Whisper */
    uint32_t language; /* UINT32_MAX: to be heard */
    bool translate, repeats;
    uint32_t attempt;
    double no_speech;             /* its probability */
    struct shoal_span *parts;     /* of the text, one for each span, followed by its words */
    struct word_times_part *said; /* the same parts, in tokens and seconds of what is heard */
};

uint32_t transcriber_unrepeated(const int32_t *tokens, uint32_t n)
{
    for (uint32_t len = 1; len <= LONGEST_LOOP; len++) {
        /* "no no no no" is said; eight times is not, and longer phrases are said three times. */
        const uint32_t times = len == 1 ? 8 : len == 2 ? 6 : 4;
        uint32_t same = 0;
        while (same + len < n && tokens[n - 1 - same] == tokens[n - 1 - same - len])
            same++;
        if (same >= (times - 1) * len)
            return n - same;
    }
    return n;
}

/* ---- preparing ------------------------------------------------------------------------------ */

static uint32_t pages_for(uint32_t n_tokens)
{
    return (n_tokens + KERN_PAGE - 1) / KERN_PAGE;
}

static int check(const struct recognizer *h, const struct shoal_infer_opts *o, struct err *e)
{
    const uint32_t most = t5_most_samples(h->t5);
    if (o->n_samples > most)
        return err_set(e, SHOAL_ELIMIT,
                       "the sound has %.1f seconds, the model hears at most %.1f at a time: cut it "
                       "at a pause",
                       (double)o->n_samples / T5_SAMPLE_RATE, (double)most / T5_SAMPLE_RATE);
    return 0;
}

static bool is_silent(const int16_t *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (x[i] > SILENCE || x[i] < -SILENCE)
            return false;
    return true;
}

/* Finds the speech in the sound, and what to hear of it. */
static int find_speech(const struct recognizer *h, struct job *j, struct err *e)
{
    struct input *in = j->input;
    struct vad_span *spans;
    uint32_t n_spans;
    int rc = vad_listen(h->vad, j->o.samples, j->o.n_samples, &spans, &n_spans, e);
    in->spans = rc == 0 ? mem_zalloc_n(2 * (n_spans + 1u), sizeof(*in->spans)) : NULL;
    if (rc == 0 && !in->spans)
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    for (uint32_t i = 0; rc == 0 && i < n_spans; i++) {
        in->spans[2 * i] = (double)spans[i].start / T5_SAMPLE_RATE;
        in->spans[2 * i + 1] = (double)spans[i].end / T5_SAMPLE_RATE;
    }
    if (rc == 0) {
        uint32_t end = n_spans ? spans[n_spans - 1].end : 0;
        if (j->o.n_samples - end <= LONG_PAUSE)
            end = j->o.n_samples;
        else if (n_spans)
            end += KEPT_PAUSE;
        if (n_spans && spans[0].start > LONG_PAUSE)
            in->from = spans[0].start - KEPT_PAUSE;
        in->n = n_spans ? end - in->from : 0;
        j->result.values = in->spans;
        j->result.n_values = 2 * n_spans;
    }
    mem_free(spans);
    return rc;
}

/* The language that was asked for. */
static int check_language(const struct recognizer *h, struct job *j, struct err *e)
{
    struct input *in = j->input;
    const char *wanted = j->o.labels;
    if (h->rules)
        return whisper_rules_asked(h->rules, wanted, &in->language, &in->translate, e);
    j->result.label = "en";
    if (!wanted || !wanted[0] || strcmp(wanted, "en") == 0)
        return 0;
    return err_set(e, SHOAL_EINVAL,
                   strchr(wanted, '>')
                       ? "this model hears English only and does not translate ('%.20s')"
                       : "the model does not hear the language '%.20s'; it hears: en",
                   wanted);
}

/* As many tokens as can be said in n samples. */
static uint32_t most_tokens(const struct recognizer *h, uint32_t n, bool words)
{
    const uint32_t least = READ_AGAIN + 2; /* of a model that is read again */
    const uint32_t room = h->max_tokens > least ? h->max_tokens - READ_AGAIN : 1;
    const uint32_t limit = words ? room : h->max_tokens;
    const double seconds = (double)n / T5_SAMPLE_RATE;
    const uint32_t most =
        LEAST_TOKENS + (uint32_t)(seconds * (h->rules ? WHISPER_PER_SECOND : TOKENS_PER_SECOND));
    return most < limit ? most : limit;
}

static int prepare(const void *self, struct job *j, struct err *e)
{
    const struct recognizer *h = self;
    struct input *in = mem_zalloc(sizeof(*in));
    if (!in)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    j->input = in;
    buf_init(&in->text, MAX_TEXT_BYTES);
    tok_ids_init(&in->draft, MAX_TEXT_BYTES);
    int rc = check(h, &j->o, e);
    if (rc == 0)
        rc = check_language(h, j, e);
    in->n = is_silent(j->o.samples, j->o.n_samples) ? 0 : j->o.n_samples;
    if (rc == 0 && in->n > 0 && h->vad && !j->o.raw)
        rc = find_speech(h, j, e);
    if (rc == 0 && in->n > 0 && !h->rules && j->o.document) /* Whisper's texts have times in them */
        rc = tokenizer_encode(h->tokenizer, &in->draft, j->o.document, j->o.document_bytes, 0, e);
    if (rc == 0 && in->n > 0 && j->o.prompt && j->o.prompt[0])
        rc = phrases_create(&in->phrases, h->tokenizer, j->o.prompt, strlen(j->o.prompt), e);
    if (rc < 0)
        return rc;
    if (in->n > 0 && in->n < SHORT_SOUND) {
        in->before = SHORT_BEFORE;
        in->after = SHORT_AFTER;
    }
    const uint32_t all = in->before + in->n + in->after;
    if (all >= t5_least_samples(h->t5))
        in->n_frames = t5_frames(h->t5, all);
    in->max_tokens = most_tokens(h, in->n, j->o.words);
    in->n_source_pages = pages_for(in->n_frames);
    in->need = in->n_source_pages + pages_for(in->max_tokens + (j->o.words ? READ_AGAIN : 0));
    if (in->need > h->n_pages)
        return err_set(e, SHOAL_ELIMIT,
                       "a sound of %.1f seconds needs %u pages of keys and values, there are %u",
                       (double)in->n / T5_SAMPLE_RATE, in->need, h->n_pages);
    in->source_pages = mem_zalloc_n(in->need, sizeof(*in->source_pages));
    in->tokens = mem_zalloc_n(in->max_tokens + 2, sizeof(*in->tokens));
    if (!in->source_pages || !in->tokens)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a task");
    in->pages = in->source_pages + in->n_source_pages;
    j->cost = in->n_frames ? in->n_frames : 1;
    j->result.n_tokens = in->n_frames;
    return 0;
}

static void drop(struct job *j)
{
    struct input *in = j->input;
    if (!in)
        return;
    buf_fini(&in->text);
    tok_ids_fini(&in->draft);
    mem_free(in->source_pages);
    phrases_destroy(in->phrases);
    mem_free(in->spans);
    mem_free(in->parts);
    mem_free(in->said);
    mem_free(in->tokens);
    mem_free(in);
}

/* ---- the tasks of a batch -------------------------------------------------------------------- */

static uint32_t n_written(const struct input *in)
{
    return in->n_tokens - in->n_prefix;
}

/* Room for as many parts and words as there are tokens. */
static int reserve_parts(struct job *j)
{
    struct input *in = j->input;
    const size_t n = n_written(in) + 1u;
    mem_free(in->spans);
    in->spans = mem_zalloc_n(4 * n, sizeof(*in->spans));
    in->parts = mem_zalloc_n(2 * n, sizeof(*in->parts));
    in->said = mem_zalloc_n(n, sizeof(*in->said));
    j->result.values = in->spans;
    j->result.spans = in->parts;
    j->result.n_values = 0;
    return in->spans && in->parts && in->said ? 0 : SHOAL_ENOMEM;
}

/* A part of the text, or a word of it; times count from the start of what is heard. */
static void add_span(struct job *j, struct shoal_span span, double start, double stop)
{
    struct input *in = j->input;
    const double at = ((double)in->from - in->before) / T5_SAMPLE_RATE;
    const double most = (double)j->o.n_samples / T5_SAMPLE_RATE;
    const uint32_t n = j->result.n_spans++;
    in->parts[n] = span;
    in->spans[2 * n] = fmin(fmax(start + at, 0), most);
    in->spans[2 * n + 1] = fmin(fmax(stop + at, 0), most);
    j->result.n_values += 2;
}

/* One part of the text, [from, to) of the written tokens. */
static void add_part(const struct recognizer *h, struct job *j, uint32_t from, uint32_t to,
                     double start, double stop)
{
    struct input *in = j->input;
    const uint32_t before = (uint32_t)in->text.len;
    tokenizer_decode(h->tokenizer, &in->text, in->tokens + 1 + in->n_prefix + from, to - from, 0);
    if (in->text.len == before)
        return;
    in->said[j->result.n_spans] = (struct word_times_part){to - from, start, stop};
    add_span(j, (struct shoal_span){.start = before, .end = (uint32_t)in->text.len}, start, stop);
}

/* Whisper's times divide the text into parts. */
static void divide(const struct recognizer *h, struct job *j)
{
    struct input *in = j->input;
    const int32_t *written = in->tokens + 1 + in->n_prefix;
    const uint32_t n = n_written(in);
    double start = 0;
    uint32_t from = 0;
    for (uint32_t i = 0; i < n; i++)
        if (whisper_rules_is_time(h->rules, written[i])) {
            const double at = WHISPER_RULES_STEP * (written[i] - h->rules->first_time);
            add_part(h, j, from, i, start, at);
            start = at;
            from = i + 1;
        }
    add_part(h, j, from, n, start, (double)MOST_SECONDS);
    j->result.label = h->rules->n_languages == 0             ? "en"
                      : in->language < h->rules->n_languages ? h->rules->name[in->language]
                                                             : NULL; /* nobody speaks */
}

static int put_text(const struct recognizer *h, struct job *j)
{
    struct input *in = j->input;
    const double at = ((double)in->from - in->before) / T5_SAMPLE_RATE;
    const uint32_t n = j->result.n_values;
    const double start = n ? in->spans[0] - at : 0;
    const double stop = n ? in->spans[n - 1] - at : (double)in->n / T5_SAMPLE_RATE;
    if ((h->rules || j->o.words) && reserve_parts(j) < 0)
        return SHOAL_ENOMEM;
    if (h->rules)
        divide(h, j);
    else if (j->o.words)
        add_part(h, j, 0, n_written(in), start, stop);
    else
        tokenizer_decode(h->tokenizer, &in->text, in->tokens + 1, in->n_tokens, 0);
    return in->text.rc;
}

/* Whether words are written with spaces between them. */
static bool is_spaced(const struct recognizer *h, const struct input *in)
{
    static const char *const without[] = {"zh", "ja", "th", "lo", "my", "yue"};
    const bool named = h->rules && in->language < h->rules->n_languages;
    for (size_t i = 0; named && !in->translate && i < sizeof(without) / sizeof(without[0]); i++)
        if (strcmp(h->rules->name[in->language], without[i]) == 0)
            return false;
    return true;
}

/* What is read again: the text without its times. */
static struct word_times_text text_of(const struct recognizer *h, const struct job *j)
{
    const struct input *in = j->input;
    const uint32_t heard = in->before + in->n + in->after;
    const double step =
        h->rules ? WHISPER_RULES_STEP : (double)heard / T5_SAMPLE_RATE / in->n_frames;
    const uint32_t n_heard = (uint32_t)((double)heard / T5_SAMPLE_RATE / step);
    int32_t *tokens = in->tokens; /* they are needed no more in their old form */
    struct word_times_text x = {.first = tokens,
                                .n_first = in->n_prefix + 1,
                                .end = h->end,
                                .pages = in->pages,
                                .source_pages = in->source_pages,
                                .n_source = in->n_frames,
                                .n_heard = n_heard < in->n_frames ? n_heard : in->n_frames,
                                .step = step,
                                .spaced = is_spaced(h, in),
                                .parts = in->said,
                                .n_parts = j->result.n_spans};
    uint32_t n = 0;
    for (uint32_t i = in->n_prefix + 1; i <= in->n_tokens; i++)
        if (!h->rules || !whisper_rules_is_time(h->rules, tokens[i]))
            tokens[in->n_prefix + 1 + n++] = tokens[i];
    if (h->rules) { /* it is told that there are none; a text begins with a time, which made room */
        memmove(tokens + in->n_prefix + 2, tokens + in->n_prefix + 1, n * sizeof(*tokens));
        tokens[in->n_prefix + 1] = h->rules->first_time - 1;
        x.n_first++;
    }
    x.tokens = tokens + x.n_first;
    x.n = n;
    return x;
}

/* The words behind the parts, with their times. */
static int put_words(struct recognizer *h, struct job *j)
{
    struct input *in = j->input;
    const struct word_times_text x = text_of(h, j);
    struct word_times_word *words;
    uint32_t n;
    while (in->n_pages < pages_for(x.n_first + x.n + 1))
        in->pages[in->n_pages++] = kv_pages_take(h->pages);
    const int rc = word_times_find(&words, &n, h->t5, h->tokenizer, &x);
    /* The space before a text is not always written. */
    uint32_t all = 0;
    for (uint32_t i = 0; i < x.n; i++)
        all += (uint32_t)tokenizer_piece(h->tokenizer, x.tokens[i], 0).n;
    const uint32_t missing = all > in->text.len ? all - (uint32_t)in->text.len : 0;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        if (words[i].from >= missing && words[i].to > words[i].from)
            add_span(j,
                     (struct shoal_span){.label = "word",
                                         .start = words[i].from - missing,
                                         .end = words[i].to - missing},
                     words[i].start, words[i].stop);
    if (rc == 0)
        mem_free(words);
    return rc;
}

/* Ends the i-th active task; code 0: its text is the result. */
static void end(struct recognizer *h, uint32_t i, int code)
{
    struct job *j = h->active[i];
    struct input *in = j->input;
    const uint32_t n = n_written(in) ? n_written(in) : 1;
    if (code == 0)
        code = put_text(h, j);
    if (code == 0 && j->o.words && in->text.len > 0)
        code = put_words(h, j);
    for (uint32_t p = 0; p < in->n_source_pages; p++)
        kv_pages_release(h->pages, in->source_pages[p]);
    for (uint32_t p = 0; p < in->n_pages; p++)
        kv_pages_release(h->pages, in->pages[p]);
    h->pages_promised -= in->need;
    h->active[i] = h->active[--h->n_active];
    if (code == 0) {
        j->result.text = buf_str(&in->text);
        j->result.text_bytes = in->text.len;
        j->result.confidence = in->text.len ? (float)exp(in->logprob / n) : 0;
    }
    if (code < 0)
        job_fail(j, code, err_text(code));
    batcher_finish(j);
}

/* Encodes a job's sound; a state that is not finite spreads over its frame through the norms, and
 * would be hidden by rounding. */
static int listen_to(struct recognizer *h, const struct job *j)
{
    const struct input *in = j->input;
    memset(h->sound, 0, in->before * sizeof(*h->sound));
    for (uint32_t i = 0; i < in->n; i++)
        h->sound[in->before + i] = (float)j->o.samples[in->from + i] / 32768.0f;
    memset(h->sound + in->before + in->n, 0, in->after * sizeof(*h->sound));
    t5_hear(h->t5, h->sound, in->before + in->n + in->after, in->source_pages);
    for (uint32_t i = 0; i < in->n_frames; i++)
        if (!isfinite(t5_encoded(h->t5, 0, i)[0]))
            return SHOAL_ENOTFINITE;
    return 0;
}

static void begin(struct recognizer *h, struct job *j)
{
    struct input *in = j->input;
    h->pages_promised += in->need;
    for (uint32_t p = 0; p < in->n_source_pages; p++)
        in->source_pages[p] = kv_pages_take(h->pages);
    in->tokens[0] = t5_config(h->t5)->start_token;
    h->active[h->n_active++] = j;
    const int code = in->n_frames ? listen_to(h, j) : 0;
    if (code < 0 || in->n_frames == 0)
        end(h, h->n_active - 1, code);
}

/* Starts the jobs that fit; returns the next one. */
static uint32_t admit(struct recognizer *h, struct job *const *jobs, uint32_t at, uint32_t n)
{
    for (; at < n; at++) {
        const struct input *in = jobs[at]->input;
        const int code = task_gave_up(jobs[at]->task, clock_ns());
        if (code < 0) {
            job_fail(jobs[at], code, err_text(code));
            continue;
        }
        if (h->n_active == h->max_jobs || h->pages_promised + in->need > h->n_pages)
            break;
        begin(h, jobs[at]);
    }
    return at;
}

/* Goes back to where a word of a phrase was begun that is none. */
static void take_back(struct input *in)
{
    in->n_tokens = in->helped_at;
    in->logprob = in->helped_logprob;
    in->place = (struct phrases_place){.n = 0};
    in->plain_until = in->helped_at + 1;
    in->helped = false;
}

/* Whether the text so far was hardly heard: help would then make phrases of noise. */
static bool is_unsure(const struct input *in)
{
    return in->n_tokens >= 2 && in->logprob / in->n_tokens < LEAST_SURE && in->place.n == 0;
}

/* The best token with the help of the phrases; false: the text went back instead. */
static bool help(struct recognizer *h, struct input *in, const float *logits, uint32_t *best)
{
    const struct kern_ops *k = t5_kernels(h->t5);
    const uint32_t n_vocab = t5_config(h->t5)->n_vocab, likeliest = *best;
    memcpy(h->row, logits, n_vocab * sizeof(*h->row));
    if (!is_unsure(in))
        phrases_help(in->phrases, &in->place, h->row, logits[likeliest],
                     in->n_tokens >= in->plain_until);
    *best = k->argmax(h->row, n_vocab);
    if (*best != likeliest && !in->helped) {
        in->helped = true;
        in->helped_at = in->n_tokens;
        in->helped_logprob = in->logprob;
    }
    const enum phrases_state state = phrases_take(in->phrases, &in->place, (int32_t)*best);
    if (in->helped && state == PHRASES_OUTSIDE) {
        take_back(in);
        return false;
    }
    if (state == PHRASES_WORD)
        in->helped = false;
    return true;
}

/* ---- Whisper ---- */

/* Behind the start token: is there speech, and which language; false: nothing is forced. */
static bool begin_text(struct recognizer *h, struct input *in, const float *logits)
{
    const struct kern_ops *k = t5_kernels(h->t5);
    const struct whisper_rules *r = h->rules;
    const float top = logits[k->argmax(logits, r->n_vocab)];
    if (in->n_tokens == 0) {
        const double sum = (double)k->softmax_exp(h->row, logits, r->n_vocab, top);
        in->no_speech = r->no_speech < 0 ? 0 : (double)h->row[r->no_speech] / sum;
        if (r->n_languages) {
            if (in->language == UINT32_MAX)
                in->language = whisper_rules_heard(r, logits);
            in->tokens[1] = r->language[in->language];
            in->tokens[2] = r->task[in->translate];
            in->n_prefix = 2;
        }
    }
    if (in->n_tokens >= in->n_prefix)
        return false;
    in->n_tokens++;
    return true;
}

/* A token by its probability at the temperature of the attempt; the same for the same text. */
static uint32_t draw(struct recognizer *h, const struct input *in, const float *logits,
                     uint32_t likeliest)
{
    const uint32_t n = h->rules->n_vocab;
    for (uint32_t i = 0; i < n; i++)
        h->row[i] = logits[i] / (WARMER * (float)in->attempt);
    double left = (double)t5_kernels(h->t5)->softmax_exp(h->row, h->row, n, h->row[likeliest]);
    left *= sampler_uniform(in->attempt, in->n_tokens);
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(logits[i]) && (left -= (double)h->row[i]) < 0)
            return i;
    return likeliest;
}

/* A text that is not good enough is written again; false: it is, or nobody speaks. */
static bool again(const struct recognizer *h, struct input *in)
{
    const uint32_t n = n_written(in);
    const bool unsure = n > 0 && in->logprob / n < LEAST_LOGPROB;
    if (!h->rules)
        return false;
    if (unsure && in->no_speech > NO_SPEECH) {
        in->n_tokens = in->n_prefix;
        return false;
    }
    if ((!unsure && !in->repeats) || in->attempt == ATTEMPTS)
        return false;
    in->attempt++;
    in->n_tokens = in->n_prefix;
    in->logprob = 0;
    in->repeats = in->helped = false;
    in->place = (struct phrases_place){.n = 0};
    return true;
}

/* ---- tokens ---- */

/* Ends the text where it begins to repeat itself; times are no part of that. */
static bool cut_repetition(const struct recognizer *h, struct input *in)
{
    int32_t text[TARGET_MOST] = {0};
    uint32_t at[TARGET_MOST], n = 0;
    for (uint32_t i = in->n_prefix + 1; i <= in->n_tokens; i++)
        if (!h->rules || !whisper_rules_is_time(h->rules, in->tokens[i])) {
            text[n] = in->tokens[i];
            at[n++] = i;
        }
    const uint32_t kept = transcriber_unrepeated(text, n);
    if (kept < n)
        in->n_tokens = kept ? at[kept - 1] : in->n_prefix;
    return kept < n;
}

/* Takes the best token; false: the text is complete. */
static bool take_token(struct recognizer *h, struct input *in, const float *logits)
{
    const struct kern_ops *k = t5_kernels(h->t5);
    const uint32_t n_vocab = t5_config(h->t5)->n_vocab;
    if (h->rules) {
        if (begin_text(h, in, logits))
            return true;
        memcpy(h->ruled, logits, n_vocab * sizeof(*logits));
        logits = h->ruled;
        whisper_rules_apply(h->rules, k, h->ruled, in->tokens + 1 + in->n_prefix, n_written(in),
                            (double)(in->before + in->n + in->after) / T5_SAMPLE_RATE, h->row);
    }
    const uint32_t likeliest = k->argmax(logits, n_vocab);
    const float top = logits[likeliest];
    const double sum = (double)k->softmax_exp(h->row, logits, n_vocab, top);
    uint32_t best = likeliest;
    if (in->attempt)
        best = draw(h, in, logits, likeliest);
    else if (in->phrases && !help(h, in, logits, &best))
        return true;
    if ((int32_t)best == h->end)
        return false;
    in->logprob += (double)(logits[best] - top) - log(sum); /* as the model alone sees it */
    in->tokens[++in->n_tokens] = (int32_t)best;
    in->repeats = cut_repetition(h, in);
    return !in->repeats && in->n_tokens < in->max_tokens;
}

/* How many tokens of the draft may be tried behind those that are written. */
static uint32_t drafted(const struct recognizer *h, const struct input *in)
{
    const uint32_t at = in->n_tokens, each = DRAFTED / h->n_active;
    if (in->draft.n <= at || at + 1 >= in->max_tokens ||
        memcmp(in->tokens + 1, in->draft.ids, at * sizeof(*in->tokens)) != 0)
        return 0;
    uint32_t n = (uint32_t)in->draft.n - at;
    n = n < in->max_tokens - at - 1 ? n : in->max_tokens - at - 1;
    return n < each ? n : each;
}

/* The rows of a task: its last token, and tokens of the draft behind it. */
static uint32_t add_rows(struct recognizer *h, struct input *in, uint32_t at)
{
    in->first_row = at;
    in->n_rows = 1 + drafted(h, in);
    for (uint32_t k = 0; k < in->n_rows; k++) {
        const uint32_t pos = in->n_tokens + k;
        if (pos / KERN_PAGE == in->n_pages)
            in->pages[in->n_pages++] = kv_pages_take(h->pages);
        h->rows[at + k] = (struct t5_row){.token = k ? in->draft.ids[pos - 1] : in->tokens[pos],
                                          .pos = pos,
                                          .pages = in->pages,
                                          .source_pages = in->source_pages,
                                          .n_source = in->n_frames};
    }
    return at + in->n_rows;
}

/* Takes the tokens of a task's rows, as long as they are those that were tried; false: its text is
 * complete, or *code says why it fails. */
static bool take_rows(struct recognizer *h, const struct job *j, int *code)
{
    struct input *in = j->input;
    *code = task_gave_up(j->task, clock_ns());
    for (uint32_t k = 0; *code == 0 && k < in->n_rows; k++) {
        const float *logits = t5_logits(h->t5, in->first_row + k);
        const uint32_t before = in->n_tokens;
        if (!isfinite(logits[0]))
            *code = SHOAL_ENOTFINITE;
        else if (!take_token(h, in, logits))
            return again(h, in);
        else if (k + 1 < in->n_rows &&
                 (in->n_tokens != before + 1 || in->tokens[in->n_tokens] != in->draft.ids[before]))
            break;
    }
    return *code == 0;
}

/* One token of every task, or more where they were guessed. */
static void step(struct recognizer *h)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->n_active; i++)
        n = add_rows(h, h->active[i]->input, n);
    t5_decode(h->t5, h->rows, n);
    for (uint32_t i = h->n_active; i-- > 0;) { /* backwards, since the last one fills a gap */
        int code;
        if (!take_rows(h, h->active[i], &code))
            end(h, i, code);
    }
}

static void run(void *self, struct job *const *jobs, uint32_t n)
{
    struct recognizer *h = self;
    uint32_t at = admit(h, jobs, 0, n);
    while (h->n_active > 0) {
        const uint32_t before = h->n_active;
        step(h);
        if (h->n_active < before)
            at = admit(h, jobs, at, n);
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

static void info(const void *self, struct shoal_engine_info *out)
{
    const struct recognizer *h = self;
    const struct t5_config *c = t5_config(h->t5);
    const struct t5_sizes sizes = t5_sizes(h->t5);
    out->arch = c->arch;
    out->kernels = t5_kernels(h->t5)->name;
    out->n_vocab = c->n_vocab;
    out->n_ctx = sizes.n_ctx;
    out->n_ctx_train = c->n_ctx_train;
    out->n_layers = c->n_enc + c->n_dec;
    out->dim = c->dim;
    out->n_threads = t5_n_threads(h->t5);
    out->n_params = model_file_n_params(h->file);
    out->file_bytes = h->file->n_bytes;
    out->weights_bytes = sizes.weights;
    out->scratch_bytes = sizes.scratch;
    out->kv_bytes = h->kv_bytes;
    out->kv_pages = h->n_pages;
    out->page_tokens = KERN_PAGE;
    out->from_cache = t5_from_cache(h->t5);
}

/* Languages that it hears. */
static const char *language(const void *self, enum shoal_kind kind, const char *set, uint32_t i)
{
    const struct whisper_rules *r = ((const struct recognizer *)self)->rules;
    (void)kind;
    (void)set;
    if (r && r->n_languages)
        return i < r->n_languages ? r->name[i] : NULL;
    return i == 0 ? "en" : NULL;
}

static void close_(void *self)
{
    struct recognizer *h = self;
    t5_destroy(h->t5);
    vad_destroy(h->vad);
    whisper_rules_destroy(h->rules);
    kv_pages_destroy(h->pages);
    if (h->kv)
        mem_pages_free(h->kv, h->kv_bytes);
    mem_free(h->row);
    mem_free(h->ruled);
    mem_free(h->sound);
    mem_free(h->active);
    mem_free(h->rows);
    mem_free(h);
}

static const struct specialist_ops ops = {
    .engine = "native",
    .prepare = prepare,
    .run = run,
    .drop = drop,
    .label = language,
    .info = info,
    .close = close_,
};

static int check_vocabulary(struct recognizer *h, struct err *e)
{
    const struct tokenizer_info *t = tokenizer_info(h->tokenizer);
    const struct t5_config *c = t5_config(h->t5);
    h->end = t->eos;
    h->max_tokens = c->n_ctx_train - 1; /* the start is one of them */
    const uint32_t most = h->rules ? WHISPER_MOST_TOKENS : TARGET_MOST;
    h->max_tokens = h->max_tokens < most ? h->max_tokens : most;
    if (t->n_vocab > c->n_vocab)
        return err_set(e, SHOAL_EFORMAT, "the tokenizer has %u tokens, but the model only %u",
                       t->n_vocab, c->n_vocab);
    if (t->eos == TOKENIZER_NONE)
        return err_set(e, SHOAL_EFORMAT, "the tokenizer has no end token");
    return 0;
}

static int reserve(struct recognizer *h, struct err *e)
{
    int rc = t5_engine_reserve(h->t5, h->n_pages, &h->kv, &h->kv_bytes, e);
    if (rc < 0)
        return rc;
    const size_t row_bytes = (t5_config(h->t5)->n_vocab + 16) * sizeof(*h->row);
    h->row = mem_aligned(row_bytes);
    h->ruled = h->rules ? mem_aligned(row_bytes) : NULL;
    h->sound = mem_aligned((t5_most_samples(h->t5) + 16) * sizeof(*h->sound));
    h->active = mem_zalloc_n(h->max_jobs, sizeof(*h->active));
    h->rows = mem_zalloc_n(h->max_jobs + DRAFTED, sizeof(*h->rows));
    if (!h->row || (h->rules && !h->ruled) || !h->sound || !h->active || !h->rows)
        return err_set(e, SHOAL_ENOMEM, "out of memory for %u tasks", h->max_jobs);
    return kv_pages_create(&h->pages, h->n_pages, KERN_PAGE, e);
}

/* The file's detector of speech, if it has one. */
static int load_vad(struct recognizer *h, const char *kernels, struct err *e)
{
    struct str config, weights;
    if (!model_file_get_str(h->file, "shoal.vad.config", &config) ||
        !model_file_get_str(h->file, "shoal.vad.weights", &weights))
        return 0;
    int rc = vad_create(&h->vad, config.p, config.n, weights.p, weights.n, kernels, e);
    return rc < 0 ? err_wrap(e, "shoal.vad") : 0;
}

static int load(struct recognizer *h, const char *path, struct crew *crew,
                const struct shoal_engine_opts *o, struct err *e)
{
    char dir[PATH_MAX];
    struct t5_sizes sizes;
    struct t5_opts to = {
        .crew = crew, .n_ctx = o->n_ctx, .max_seqs = 1, .max_rows = h->max_jobs + DRAFTED};
    int rc = t5_engine_opts(&to, o, dir, e);
    if (rc == 0)
        rc = t5_measure(&sizes, h->file, &to, e);
    if (rc < 0)
        return rc;
    const struct memory_plan_need need = {sizes.weights, sizes.scratch, sizes.kv_page};
    const size_t each = pages_for(sizes.n_ctx) + pages_for(sizes.n_ctx / 6);
    rc =
        memory_plan_pages(&h->n_pages, &need, each * (h->max_jobs > 1 ? h->max_jobs / 2 : 1), o, e);
    if (rc == 0)
        rc = t5_create(&h->t5, h->file, path, &to, e);
    if (rc == 0 && strcmp(t5_config(h->t5)->arch, "whisper") == 0)
        rc = whisper_rules_create(&h->rules, h->tokenizer, t5_config(h->t5)->n_vocab, e);
    if (rc == 0)
        rc = check_vocabulary(h, e);
    if (rc == 0)
        rc = load_vad(h, o->kernels, e);
    return rc < 0 ? rc : reserve(h, e);
}

int transcriber_open(struct specialist *sp, const struct model_file *file,
                     const struct tokenizer *t, const char *path, struct crew *crew,
                     const struct shoal_engine_opts *o, struct err *e)
{
    struct recognizer *h = mem_zalloc(sizeof(*h));
    if (!h)
        return err_set(e, SHOAL_ENOMEM, "out of memory for a speech recognizer");
    h->file = file;
    h->tokenizer = t;
    h->max_jobs = o->max_tasks ? o->max_tasks : DEFAULT_MAX_JOBS;
    int rc = load(h, path, crew, o, e);
    if (rc < 0) {
        close_(h);
        return err_wrap(e, "%s", path);
    }
    *sp = (struct specialist){.ops = &ops,
                              .self = h,
                              .kinds = SHOAL_KIND_TRANSCRIBE,
                              .max_jobs = h->max_jobs,
                              .lane = t5_lane(h->t5),
                              .weights = t5_weights(h->t5),
                              .max_cost = h->max_jobs * t5_sizes(h->t5).n_ctx};
    return 0;
}

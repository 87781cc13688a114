/* shoal_infer.h - specialists: classify, tag, embed, rerank, summarize, score, transcribe,
 * speak.
 *
 * An inference is a task like a generation: shoal_task_wait, _cancel and _free apply to it.
 *
 * Example: the label of a text.
 *
 *     static int classify(struct shoal_engine *engine, const char *text)
 *     {
 *         struct shoal_infer_opts opts = {
 *             .size = sizeof(opts),
 *             .kind = SHOAL_KIND_CLASSIFY,
 *             .text = text,
 *             .text_bytes = strlen(text),
 *         };
 *         struct shoal_task *task;
 *         struct shoal_error err;
 *         int rc = shoal_infer_submit(engine, &opts, &task, &err);
 *         if (rc < 0) {
 *             fprintf(stderr, "%s\n", err.msg);
 *             return rc;
 *         }
 *         rc = shoal_task_wait(task);
 *         const struct shoal_result *result = shoal_task_result(task);
 *         if (rc == 0)
 *             printf("%s %.2f\n", result->label, result->confidence);
 *         else
 *             fprintf(stderr, "%s\n", result->message);
 *         shoal_task_free(task); // also frees the result
 *         return rc;
 *     }
 *
 * Thread:    any; the done callback comes on the engine's thread, as events do (shoal_task.h).
 * Ownership: texts, values and samples are copied at submit, images decoded.
 * Lifetime:  a result and everything it points to live until the task is freed.  Label and input
 *            names live as long as the engine. */
#ifndef SHOAL_SHOAL_INFER_H
#define SHOAL_SHOAL_INFER_H

#include "shoal/shoal_task.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shoal_result;

struct shoal_infer_opts { /* members that do not belong to the kind are ignored; zero: default */
    size_t size;
    enum shoal_kind kind; /* one bit */
    const char *text;     /* RERANK: the query */
    size_t text_bytes;
    const char *document; /* RERANK; SUMMARIZE: the text's title, or NULL; TRANSCRIBE: how the text
                             may begin, such as what was heard in a part of the sound, or NULL: the
                             result does not depend on it, only its time */
    size_t document_bytes;
    const double *values; /* SCORE: rows one after the other.  NaN: missing */
    uint32_t n_values;
    uint32_t n_columns;  /* SCORE: values of a row; 0: the model's own, or 1 */
    const char *labels;  /* CLASSIFY, TAG: name of a label set; SPEAK: of a voice; NULL: the model's
                            default.  TRANSCRIBE: the language, as "de"; "de>en", ">en": translated
                            into English; NULL: as it is heard */
    uint32_t dimensions; /* EMBED: keep this many of the first dimensions; 0: all */
    uint32_t max_sentences; /* SUMMARIZE: 0: the model's default */
    uint32_t max_tokens;    /* SUMMARIZE, where text is generated; 0: the model's default */
    uint32_t beams;         /* SUMMARIZE, where text is generated; 1: no search; 0: the model's
                               default */
    float temperature;      /* SUMMARIZE, where text is generated: above 0 samples, by the seed */
    uint64_t seed;          /* SPEAK: another one, another tone */
    bool raw;             /* SCORE: before the objective's transform; RERANK: the logit; TRANSCRIBE:
                             hear all of it, whether somebody speaks or not */
    uint64_t deadline_ns; /* absolute, CLOCK_MONOTONIC; 0: none */
    int32_t priority;     /* higher first */
    bool held;            /* as in shoal_task_opts */
    void (*done)(void *ctx, const struct shoal_result *result); /* called once; may be NULL */
    void *done_ctx;
    const char *prompt; /* EMBED: name of a prompt of the model; NULL: its default; "": none.
                           TRANSCRIBE: phrases that are likely to be said, separated by commas or
                           line ends; NULL: none */
    uint32_t whole;  /* 1: refuse a text that is longer than the model can read (SHOAL_ELIMIT); 0:
                        truncate it and report that in the result */
    float weight;    /* as in shoal_task_opts */
    uint64_t client; /* as in shoal_task_opts */
    const char *stream; /* SCORE: name of a stream, at most 128 bytes: the rows continue those that
                           this client submitted under the same name; NULL: a series of its own */
    uint32_t n_samples; /* TRANSCRIBE: at most 30 seconds; silence has an empty text */
    const int16_t *samples; /* one channel, 16,000 a second */
    float speed;            /* SPEAK: 0.25 to 4; 0: 1, as the voice was trained */
    float volume;           /* SPEAK: at most 4; 0: 1 */
    uint64_t part;  /* SPEAK: 1 to SHOAL_SPEAK_PARTS: only this part of the sound; 0: all.  The
                       parts, one after the other, are the whole; late ones may be empty */
    uint64_t words; /* TRANSCRIBE: 1: also when each word was said, as spans labelled "word" */
    /* CLASSIFY, EMBED: a JPEG, PNG or WebP file in place of the text, for a model that reads images
     * (info.images).  It is decoded before submit returns. */
    const void *image;
    size_t image_bytes;
};
/* The first parts are short: they can be heard while the others are computed. */
#define SHOAL_SPEAK_PARTS 4u

struct shoal_label {
    const char *name;
    float score; /* calibrated probability; in a multi-label set each label has its own */
};

struct shoal_span {
    const char *label;
    uint32_t start, end;           /* bytes of the text */
    uint32_t start_char, end_char; /* characters of the text */
    float score;
};

struct shoal_result {
    size_t size;
    enum shoal_kind kind;
    int code;            /* 0 or SHOAL_E*: cancelled, deadline, ... */
    const char *message; /* with a code: what was wrong */
    /* CLASSIFY */
    const char *label; /* the answer: the best one, or the set's out-of-scope label.  TRANSCRIBE:
                          the language, as "en"; NULL: not known */
    float confidence;  /* of label; out of scope by threshold: 1 - the best score.  TRANSCRIBE: the
                          mean probability of a token */
    const struct shoal_label *labels; /* all of the set, best first */
    uint32_t n_labels;
    /* TAG, SUMMARIZE (the sentences that were taken, in their order), TRANSCRIBE (parts of the
     * text, one for each pair of values; none: the model does not divide it; then, if asked for,
     * its words, labelled "word") */
    const struct shoal_span *spans;
    uint32_t n_spans;
    /* EMBED */
    const float *vector;
    uint32_t n_dims;
    /* RERANK: values[0]; SCORE: n_outputs for each row; TRANSCRIBE: start and end of each piece of
     * speech in seconds, none if the model has neither times nor a detector of speech */
    const double *values;
    uint32_t n_values;
    /* SUMMARIZE, TRANSCRIBE */
    const char *text;
    size_t text_bytes;

    uint32_t n_tokens;                   /* of the input; TRANSCRIBE: frames; SPEAK: sounds */
    bool truncated;                      /* the input was longer than the model can read */
    uint32_t batch;                      /* tasks that were computed together */
    uint64_t queue_ns, run_ns, total_ns; /* from submit */
    /* SPEAK: one channel; none if there is nothing to say */
    const int16_t *samples;
    uint32_t n_samples, sample_rate;
};

/* Fails as shoal_task_submit does; SHOAL_EDEADLINE also when the queue and the measured speed say
 * that the deadline cannot be met.  SHOAL_EUNSUPPORTED: the engine is not of this kind.
 * SHOAL_EINVAL: the text or the values are missing or too long, there is no such label set, or the
 * model reads images and this is a text, or the reverse.  An image is SHOAL_EFORMAT if it cannot be
 * read, SHOAL_ELIMIT if it is too large, SHOAL_EUNSUPPORTED if the library for it is missing. */
SHOAL_API int shoal_infer_submit(struct shoal_engine *engine, const struct shoal_infer_opts *opts,
                                 struct shoal_task **task, struct shoal_error *err);
/* Result of a finished task (in its callback, or after shoal_task_wait); NULL for a generation. */
SHOAL_API const struct shoal_result *shoal_task_result(const struct shoal_task *task);

/* Label set i of a kind (CLASSIFY, TAG), the default first; NULL after the last. */
SHOAL_API const char *shoal_label_set(const struct shoal_engine *engine, enum shoal_kind kind,
                                      uint32_t i);
/* Label i of a set (NULL: the default), SCORE: name of output i, SPEAK: name of voice i,
 * TRANSCRIBE: language i, as "en"; NULL after the last. */
SHOAL_API const char *shoal_label(const struct shoal_engine *engine, enum shoal_kind kind,
                                  const char *set, uint32_t i);
/* SCORE: name of value i of a row, NULL if it has none.  A row has info.dim values; 0: any number.
 */
SHOAL_API const char *shoal_input_name(const struct shoal_engine *engine, uint32_t i);

#ifdef __cplusplus
}
#endif

#endif

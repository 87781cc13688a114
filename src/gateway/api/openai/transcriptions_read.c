/* transcriptions_read.c - forms and their sounds to requests; see transcriptions.h. */
#include <string.h>

#include "gateway/api/openai/transcriptions.h"
#include "wire/multipart.h"

#define MAX_FIELD ((size_t)1 << 16)

static bool is(struct str s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static int read_form(struct transcriptions_ask *ask, struct str v, struct fields_error *e)
{
    static const char *const names[] = {[TRANSCRIPTIONS_JSON] = "json",
                                        [TRANSCRIPTIONS_VERBOSE] = "verbose_json",
                                        [TRANSCRIPTIONS_TEXT] = "text",
                                        [TRANSCRIPTIONS_SRT] = "srt",
                                        [TRANSCRIPTIONS_VTT] = "vtt"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (is(v, names[i])) {
            ask->form = (enum transcriptions_form)i;
            return 0;
        }
    return fields_fail(e, "response_format", "invalid_value",
                       "response_format must be json, verbose_json, text, srt or vtt");
}

/* "de", or as names of languages and places go, "de-AT"; the model says which it hears. */
static int read_language(struct request *r, struct transcriptions_ask *ask, struct str v,
                         struct fields_error *e)
{
    size_t n = 0;
    while (n < v.n && v.p[n] >= 'a' && v.p[n] <= 'z')
        n++;
    if (v.n > 0 && (n < 2 || n > 3 || (n < v.n && v.p[n] != '-' && v.p[n] != '_')))
        return fields_fail(e, "language", "invalid_value",
                           "language must be a code of two or three small letters, such as en");
    ask->language = n ? request_copy(r, v.p, n) : NULL;
    return 0;
}

static int read_times(struct transcriptions_ask *ask, const char *name, struct str v, bool lenient,
                      struct fields_error *e)
{
    ask->words = ask->words || is(v, "word");
    return is(v, "segment") || is(v, "word") || lenient
               ? 0
               : fields_fail(e, name, "invalid_value",
                             "timestamp_granularities can only be segment and word");
}

/* One field of the form. */
static int read_field(struct request *r, struct transcriptions_ask *ask, const char *name,
                      struct str v, bool lenient, struct fields_error *e)
{
    if (v.n > MAX_FIELD)
        return fields_fail(e, name, "invalid_value", "%s is longer than %zu bytes", name,
                           MAX_FIELD);
    if (strcmp(name, "model") == 0) {
        ask->model = request_copy_utf8(r, v.p, v.n, NULL);
        return 0;
    }
    if (strcmp(name, "response_format") == 0)
        return read_form(ask, v, e);
    if (strcmp(name, "stream") == 0) {
        if (!is(v, "true") && !is(v, "false"))
            return fields_fail(e, name, "invalid_type", "stream must be true or false");
        ask->stream = is(v, "true");
        return 0;
    }
    if (strcmp(name, "chunking_strategy") == 0) /* sounds are always cut at pauses */
        return is(v, "auto") || lenient ? 0
                                        : fields_fail(e, name, "unsupported_parameter",
                                                      "chunking_strategy can only be auto");
    if (strcmp(name, "language") == 0 && !ask->translates)
        return read_language(r, ask, v, e);
    if (strcmp(name, "temperature") == 0)
        return is(v, "0") || is(v, "0.0") || lenient
                   ? 0
                   : fields_fail(e, name, "unsupported_parameter",
                                 "temperature can only be 0: the likeliest words are written");
    if (strcmp(name, "timestamp_granularities[]") == 0 ||
        strcmp(name, "timestamp_granularities") == 0)
        return read_times(ask, name, v, lenient, e);
    if (strcmp(name, "prompt") == 0) { /* phrases that are likely to be said */
        ask->prompt = request_copy_utf8(r, v.p, v.n, NULL);
        return 0;
    }
    return lenient ? 0
                   : fields_fail(e, name, "unknown_parameter", "unknown field '%.60s' of the form",
                                 name);
}

int transcriptions_read(struct request *r, struct transcriptions_ask *ask, const char *type,
                        const char *body, size_t n, bool translates, bool lenient,
                        struct fields_error *e)
{
    struct multipart_part part;
    struct multipart m;
    struct err why = {0};
    int rc = multipart_open(&m, type, body, n, &why);
    *ask = (struct transcriptions_ask){.form = TRANSCRIPTIONS_JSON,
                                       .translates = translates,
                                       .language = translates ? ">en" : NULL};
    while (rc == 0 && (rc = multipart_next(&m, &part, &why)) > 0) {
        const char *name = request_copy_utf8(r, part.name.p, part.name.n, NULL);
        if (strcmp(name, "file") == 0) {
            ask->sound = part.content;
            rc = 0;
        } else if ((rc = read_field(r, ask, name, part.content, lenient, e)) < 0) {
            return rc;
        }
    }
    if (rc < 0)
        return fields_fail(e, "", "invalid_form", "%s", why.msg);
    if (!ask->sound.p)
        return fields_fail(e, "file", "missing_required_parameter",
                           "the form has no file: send the sound in the field 'file'");
    if (ask->stream && ask->form != TRANSCRIPTIONS_JSON)
        return fields_fail(e, "response_format", "invalid_value",
                           "a stream can only have the format json");
    if (ask->words && ask->form != TRANSCRIPTIONS_VERBOSE) {
        if (!lenient)
            return fields_fail(e, "timestamp_granularities[]", "invalid_value",
                               "times of words need response_format verbose_json");
        ask->words = false;
    }
    r->model = ask->model && ask->model[0] ? ask->model : NULL;
    r->streams = ask->stream;
    return request_rc(r) < 0 ? fields_fail(e, "", NULL, "out of memory") : 0;
}

/* answer.h - events of a request to an answer of an interface: what is alike in all of them.
 *
 * This is the sink of every call that runs a request.  It decides when a stream begins and ends,
 * when nobody listens any more, when the client reads too slowly, and how a failure is reported; it
 * gathers the text, tokens and tool calls of an answer that is sent whole, and lets another model's
 * answer replace it.  An interface is a struct answer_dialect: a table of writers that put its
 * bytes into the `out` of the call.
 *
 * To make one, put a struct answer_sink first in your own struct, fill a table, and start the
 * request with the sink of the call:
 *
 *     struct mine *m = answer_create(c, r, sizeof(*m), &my_dialect, stream);
 *     if (m)
 *         stages_run(&c->gl->flow, r, c->sink);
 *
 * Thread:    the loop's.
 * Ownership: in the arena of the request, until closed; what is gathered is freed with it.
 * Failure:   out of memory ends the answer with an error, never with a part of it. */
#ifndef SHOAL_GATEWAY_CALL_ANSWER_H
#define SHOAL_GATEWAY_CALL_ANSWER_H

#include "base/buf.h"
#include "flow/sink.h"
#include "gateway/call/call.h"
#include "wire/json_out.h"

struct answer_sink;
struct request;

/* Where an answer_next_* is in a choice; zero: at its beginning. */
struct answer_cursor {
    size_t text, tokens, calls;
};

/* One choice of an answer. */
struct answer_choice {
    struct buf text;       /* gathered, as are the next two */
    struct buf tokens;     /* for answer_next_token */
    struct buf calls;      /* for answer_next_call */
    uint32_t n_calls;      /* gathered */
    uint32_t n_tokens;     /* that have an id, gathered or not */
    size_t text_bytes;     /* before the current token, gathered or not */
    size_t call_at;        /* private: the last call */
    struct sink_done done; /* when it is complete */
};

/* A gathered tool call.  Its texts end with NUL and are valid until the next event. */
struct answer_call {
    const char *id, *name, *arguments; /* arguments: JSON */
    size_t arguments_bytes;
    uint32_t index;
};

/* A gathered answer in its order: texts, and the calls between them. */
struct answer_part {
    bool is_call;
    struct answer_call call; /* with is_call; otherwise: */
    const char *text;
    size_t text_bytes;
    struct answer_cursor from; /* of its tokens, */
    size_t tokens_end;         /* which end where from.tokens is this */
};

/* How answers travel: as the body of a stream of this type, or as JSON, unless there is a function.
 */
struct answer_frame {
    const char *type;
    void (*begin)(struct call *c); /* of a stream */
    void (*end)(struct call *c);   /* of a stream; sends c->out first */
    void (*send)(struct call *c);  /* c->out is a whole answer */
};
extern const struct answer_frame answer_events; /* server-sent events */
extern const struct answer_frame answer_lines;  /* JSON objects, each on a line */

/* The writers of an interface.  All write into call->out, and only while there is a client.  Those
 * that an interface has no use for are NULL. */
struct answer_dialect {
    const struct answer_frame *frame;
    const char *failure_event; /* name of the event of a failure; NULL: none */
    /* `text` gets also tokens without any text, and begins the stream (answer_begin) when it has
     * something to write.  Otherwise a stream begins with the first token. */
    bool every_token;
    /* The model is known, or another one. */
    void (*start)(struct answer_sink *a, const struct sink_start *e);

    /* streams */
    void (*begin)(struct answer_sink *a);
    void (*plan)(struct answer_sink *a, const struct sink_plan *e);
    void (*prompt)(struct answer_sink *a, const struct sink_prompt *e);
    void (*text)(struct answer_sink *a, const struct sink_token *t);
    void (*call)(struct answer_sink *a, const struct sink_call *e);
    /* Of a specialist, in the order of the inputs. */
    void (*result)(struct answer_sink *a, const struct sink_result *e);
    /* For answer_open_part and answer_close_part. e: NULL: a text; d: NULL: more follows. */
    void (*open_part)(struct answer_sink *a, const struct sink_call *e);
    void (*close_part)(struct answer_sink *a, const struct sink_done *d);
    void (*done)(struct answer_sink *a, const struct sink_done *d); /* of one choice */
    void (*end)(struct answer_sink *a, const struct sink_done *d);  /* of the answer */
    /* NULL: the failure as an event */
    void (*failure)(struct answer_sink *a, const struct failure *f);
    /* What was sent is void.  NULL: a stream that has begun cannot be replaced. */
    void (*replace)(struct answer_sink *a, const struct sink_replace *e);

    /* An answer that is sent whole, from what was gathered.  d: NULL: results of specialists, also
     * for `end`. */
    void (*whole)(struct answer_sink *a, const struct sink_done *d);

    /* Frees what the interface holds. */
    void (*closed)(struct answer_sink *a);
};

enum answer_keeps { ANSWER_KEEPS_TEXT = 1, ANSWER_KEEPS_TOKENS = 2, ANSWER_KEEPS_CALLS = 4 };
enum answer_open { ANSWER_OPEN_NONE, ANSWER_OPEN_TEXT, ANSWER_OPEN_CALL };

struct answer_sink {
    struct sink sink;  /* first */
    struct call *call; /* held */
    const struct answer_dialect *dialect;
    struct request *request; /* NULL: the answer comes from the prompt cache */
    bool stream;
    bool fixed; /* a stream that has begun cannot be replaced, though its dialect has a writer */
    /* Bits of answer_keeps.  A whole answer keeps its text and calls, a stream nothing, unless the
     * interface sets more. */
    unsigned keeps;
    const char *model, *version; /* that answers */
    char id[48];                 /* see answer_make_id */
    uint64_t created_s;
    struct sink_usage prompt;    /* zero until it is known */
    const struct ask_plan *plan; /* of an ask */
    struct answer_choice *choices, only;
    uint32_t n_choices;
    const struct shoal_result **results; /* [n_results], of specialists */
    uint32_t n_results;
    /* see answer_open_part */
    enum answer_open part;
    struct answer_cursor part_from;
    uint32_t n_parts; /* complete ones */
};

/* Makes the sink of a request and connects it to the call; bytes: of the struct that it is the
 * first member of, which is zero behind it.  NULL: out of memory; then the call is answered and the
 * request given back. */
void *answer_create(struct call *c, struct request *r, size_t bytes, const struct answer_dialect *d,
                    bool stream);
/* The same in memory of the caller, without a request. */
SHOAL_MUST_CHECK int answer_open(struct answer_sink *a, struct call *c,
                                 const struct answer_dialect *d, uint32_t n_choices, bool stream);
/* Sets created_s, and id: prefix and 16 digits, which are the result. */
uint64_t answer_make_id(struct answer_sink *a, const char *prefix);

/* ---- streams ---- */

void answer_begin_first(struct answer_sink *a);
/* Begins the stream, unless it has begun: until then a failure is an answer of its own. */
static inline void answer_begin(struct answer_sink *a)
{
    if (!a->call->began)
        answer_begin_first(a);
}
/* An event of a stream that is an object with its own name as "type": begins both, and ends them.
 */
struct json_out answer_event(struct answer_sink *a, const char *type);
void answer_event_end(struct answer_sink *a, struct json_out *j);
/* For interfaces whose streams consist of parts: opens one unless it is open, after the one before
 * is closed.  e: a call that begins; NULL: a text. */
void answer_open_part(struct answer_sink *a, const struct sink_call *e);
void answer_close_part(struct answer_sink *a, const struct sink_done *d);
/* The open part, of choice 0, with what was gathered of it. */
struct answer_part answer_get_part(struct answer_sink *a);

/* ---- what was gathered ---- */

/* Each goes through a choice: false at its end.  A token points into the choice until the next
 * event. */
bool answer_next_token(struct answer_choice *ch, struct answer_cursor *at, struct sink_token *out);
bool answer_next_call(const struct answer_choice *ch, struct answer_cursor *at,
                      struct answer_call *out);
bool answer_next_part(const struct answer_choice *ch, struct answer_cursor *at,
                      struct answer_part *out);

#endif

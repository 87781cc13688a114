/* trace.h - where one request spends its time: a tree of spans, to which every layer can add.
 *
 * A trace belongs to those who hold it. When the last one lets go, spans that are still open end
 * with the root, and the trace goes to its keeper (below), complete: work that outlives
 * the answer is in it too. All functions take NULL for "not traced", and then do nothing, so
 * callers need no test.
 *
 *     uint32_t span = trace_begin(t, parent, "queue", clock_ns());
 *     trace_number(t, span, "queue.length", n);
 *     trace_end(t, span, clock_ns());
 *
 * No text of clients or models belongs into a trace: names, numbers and reasons only.
 *
 * Thread:    any; a lock guards the spans.
 * Ownership: trace_open and trace_ref hold, trace_unref lets go. Keys are constants; names and
 * values are
 *            copied, and cut at TRACE_MAX_TEXT bytes.
 * Failure:   without memory, or above TRACE_MAX_SPANS, spans are counted and left out. */
#ifndef SHOAL_TRACE_TRACE_H
#define SHOAL_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/trace_context.h"

#define TRACE_ROOT 0u
#define TRACE_NO_SPAN UINT32_MAX
#define TRACE_MAX_SPANS 256u
#define TRACE_MAX_TEXT 128u /* bytes of a name or value; longer ones are cut */

/* What a span is for its neighbours, as OpenTelemetry numbers it. */
enum trace_kind { TRACE_INTERNAL = 1, TRACE_SERVER = 2, TRACE_CLIENT = 3 };

struct trace_note { /* a figure or a word of a span */
    const char *key;
    const char *text; /* NULL: a number */
    int64_t number;
    struct trace_note *next;
};

struct trace_span {
    const char *name;
    uint64_t id;
    uint32_t parent; /* its index; TRACE_NO_SPAN: the root */
    enum trace_kind kind;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; end_ns 0: open */
    bool failed;
    struct trace_note *notes, **notes_end;
};

struct trace;

/* Who gets complete traces. keep is called from any thread, often an event loop's: it must not
 * block. The trace is lent; whoever stores it holds it with trace_ref. */
struct trace_keeper {
    void (*keep)(struct trace_keeper *k, struct trace *t);
    double ratio; /* share of new traces that are sampled, 0 to 1 */
};

/* Starts with the root span, held once. from: of the caller; its trace is continued if it is valid.
 * NULL: no memory, or no keeper. */
struct trace *trace_open(struct trace_keeper *k, const struct trace_context *from, const char *name,
                         enum trace_kind kind, uint64_t now_ns);
/* Who asked, when it is known: ids are cut at 63 bytes. */
void trace_name(struct trace *t, const char *request, const char *client);
struct trace *trace_ref(struct trace *t);
void trace_unref(struct trace *t);

/* A span below another one; TRACE_NO_SPAN: there is no room. */
uint32_t trace_begin(struct trace *t, uint32_t parent, const char *name, uint64_t now_ns);
void trace_end(struct trace *t, uint32_t span, uint64_t now_ns);
/* One whose end is known already. */
uint32_t trace_add(struct trace *t, uint32_t parent, const char *name, uint64_t start_ns,
                   uint64_t end_ns);
void trace_set_kind(struct trace *t, uint32_t span, enum trace_kind kind);
/* name: a constant. */
void trace_rename(struct trace *t, uint32_t span, const char *name);
void trace_text(struct trace *t, uint32_t span, const char *key, const char *value);
void trace_number(struct trace *t, uint32_t span, const char *key, int64_t value);
/* why: a word for programs, such as "overloaded"; NULL: none. */
void trace_fail(struct trace *t, uint32_t span, const char *why);

/* The context for whoever works below this span, on another machine. t: not NULL. */
struct trace_context trace_context_of(struct trace *t, uint32_t span);

/* Where the spans of a piece of work belong. */
struct trace_at {
    struct trace *trace; /* NULL: not traced */
    uint32_t span;
    struct trace_context context; /* not traced: that of the client; span 0: none */
};

/* The traceparent for other machines; "": none. */
void trace_at_write(const struct trace_at *at, char out[TRACE_CONTEXT_CHARS + 1]);

/* ---- for keepers: a complete trace does not change ---- */

struct trace_view {
    struct trace_context from; /* its id and flags; span: of the caller, 0: none */
    const char *request, *client;
    const struct trace_span *spans; /* [n_spans], the root first */
    uint32_t n_spans, n_left_out;
    uint64_t unix_ns; /* add to the times of spans: nanoseconds since 1970 */
};

struct trace_view trace_look(const struct trace *t);
/* Bytes of memory that it takes, roughly. */
size_t trace_bytes(const struct trace *t);

#endif

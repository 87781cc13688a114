/* shoal_ask.h - the built-in flow: a command or a question in, actions as JSON and a reply out.
 *
 * A reader understands a text with the things of a home that it may mean, its plan becomes actions,
 * and a small decoder words the reply.  No action is carried out: the program that reads the JSON
 * does that.  So an action that should happen now has the "result" "simulated", one that should
 * happen later "scheduled" with "simulated":"yes"; the reply speaks as if the program had
 * succeeded.  Answers to questions are "done".  docs/ASK.md (installed under share/doc/shoal)
 * describes the actions.
 *
 * Example: the actions of a command.
 *
 *     static int actions(const char *text)
 *     {
 *         struct shoal_ask *ask;
 *         struct shoal_ask_request *request;
 *         struct shoal_error err;
 *         struct shoal_ask_request_opts opts = {
 *             .size = sizeof(opts), .text = text, .text_bytes = strlen(text), .no_reply = true};
 *         int rc = shoal_ask_open(&ask, NULL, &err);
 *         if (rc < 0) {
 *             fprintf(stderr, "%s\n", err.msg);
 *             return rc;
 *         }
 *         rc = shoal_ask_submit(ask, &opts, &request, &err);
 *         if (rc == 0) {
 *             char *json = NULL;
 *             rc = shoal_ask_wait(request);
 *             if (rc == 0)
 *                 rc = shoal_ask_json(request, 0, &json, NULL, &err);
 *             if (rc == 0)
 *                 puts(json); // {"actions":[{"action":"light.off","room":"kitchen",...}]}
 *             shoal_free(json);
 *             shoal_ask_free(request);
 *         }
 *         shoal_ask_close(ask);
 *         return rc;
 *     }
 *
 * Thread:    open and close from one thread, close when no request is left; the rest from any
 *            thread.  Events come on threads of the engines, one at a time per request: handle them
 *            quickly, and never call shoal_ask_wait or shoal_ask_close from one.
 * Ownership: open and submit give the caller an object to close or free; texts are copied.
 * Lifetime:  an event and everything it points to are valid during the callback only.  The reply
 *            lives until its request is freed. */
#ifndef SHOAL_SHOAL_ASK_H
#define SHOAL_SHOAL_ASK_H

#include "shoal/shoal_engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shoal_ask;
struct shoal_ask_request;

struct shoal_ask_opts { /* zero means default */
    size_t size;
    /* Folder with models.json.  NULL: $SHOAL_MODELS, else ./models, else beside the program, else
     * the models that were installed with the library. */
    const char *models;
    /* A file with the words, actions and lines of another home or workplace, read while opening
     * (models/home.md explains it).  NULL: the one of the models folder. */
    const char *table;
    /* Your own engines instead of the models of the folder: the reader writes plans, the reply
     * engine generates.  They must outlive the flow and may be used for other tasks too.
     * NULL: opened here.  With a table and both engines no folder is needed. */
    struct shoal_engine *reader, *reply;
    bool no_reply;                            /* no reply model: requests return actions only */
    uint32_t n_threads;                       /* 0: by the size of the models and the cores here */
    bool (*progress)(void *ctx, double part); /* as in shoal_engine_opts */
    void *progress_ctx;
    void *unused; /* was a model of the speech act */
    /* A home file (docs/HOME.md): the things that texts may be about.  NULL: the demo home of the
     * models folder, with a table of your own none: things are then known by their words alone. */
    const char *home;
};

/* Opens the models and checks their files against the manifest.  opts may be NULL.  On failure
 * *out is NULL; SHOAL_ENOTFOUND: there is no such folder. */
SHOAL_API int shoal_ask_open(struct shoal_ask **out, const struct shoal_ask_opts *opts,
                             struct shoal_error *err);
/* NULL is fine. */
SHOAL_API void shoal_ask_close(struct shoal_ask *ask);

enum shoal_ask_event_kind {
    SHOAL_ASK_EVENT_PLAN, /* the actions are known */
    SHOAL_ASK_EVENT_TEXT, /* a piece of the reply */
    SHOAL_ASK_EVENT_DONE, /* the last event of a request */
};

struct shoal_ask_event {
    size_t size;
    enum shoal_ask_event_kind kind;
    const char *text; /* TEXT: the piece; PLAN: {"actions":[...],...}.  Not NUL-terminated */
    size_t text_bytes;
    int code;            /* DONE: 0 or SHOAL_E* */
    const char *message; /* DONE with a code: what was wrong */
};

typedef void (*shoal_ask_event_fn)(void *ctx, const struct shoal_ask_event *event);

struct shoal_ask_request_opts { /* zero means default */
    size_t size;
    const char *text; /* at most 4096 bytes, without NUL */
    size_t text_bytes;
    int64_t now_s; /* current time in seconds since 1970, for "in an hour"; 0: the system clock */
    bool no_reply; /* actions only */
    int32_t priority;         /* higher first */
    uint64_t deadline_ns;     /* absolute, CLOCK_MONOTONIC; 0: none */
    shoal_ask_event_fn event; /* may be NULL */
    void *event_ctx;
    /* The conversation this request belongs to: "it" refers to what was mentioned before, and "yes"
     * confirms. NULL: a separate request. */
    const char *conversation;
    /* The token of an action with the result "confirm": it happens now, and text may be NULL. */
    const char *confirm;
};

/* On failure *request is NULL and there are no events. */
SHOAL_API int shoal_ask_submit(struct shoal_ask *ask, const struct shoal_ask_request_opts *opts,
                               struct shoal_ask_request **request, struct shoal_error *err);
/* Ends the request soon; its DONE event still comes. */
SHOAL_API void shoal_ask_cancel(struct shoal_ask_request *request);
/* Waits for DONE; returns its code (0 or SHOAL_E*; SHOAL_EINVAL: request is NULL). */
SHOAL_API int shoal_ask_wait(struct shoal_ask_request *request);
/* Gives up the caller's reference (NULL is fine); before DONE it also cancels. */
SHOAL_API void shoal_ask_free(struct shoal_ask_request *request);

#define SHOAL_ASK_EXPLAIN 1u /* shoal_ask_json: also clauses with confidence, contexts, steps */

/* After DONE: {"actions":[...],"reply":"..."}.  *json belongs to the caller, who frees it with
 * shoal_free; it is NUL-terminated.  On failure it is NULL. */
SHOAL_API int shoal_ask_json(const struct shoal_ask_request *request, unsigned flags, char **json,
                             size_t *n, struct shoal_error *err);
/* After DONE: the reply, NUL-terminated, "" if there is none. */
SHOAL_API const char *shoal_ask_reply(const struct shoal_ask_request *request, size_t *n);

#ifdef __cplusplus
}
#endif

#endif

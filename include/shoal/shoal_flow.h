/* shoal_flow.h - flows: graphs of steps over several models, written in a YAML file.
 *
 * A flow classifies, tags, retrieves, generates, switches and so on, all under one deadline;
 * docs/FLOWS.md describes the file, which is the one that `shoal serve` and `shoal flow` read.
 * Steps that reach the outside (`do: call`) are refused: a server carries them out.
 *
 * Example: one text through the only flow of a file.
 *
 *     static int run(const char *path, const char *text)
 *     {
 *         struct shoal_flow *flow;
 *         struct shoal_flow_request *request;
 *         struct shoal_error err;
 *         struct shoal_flow_request_opts opts = {
 *             .size = sizeof(opts), .text = text, .text_bytes = strlen(text)};
 *         int rc = shoal_flow_open(&flow, path, NULL, &err);
 *         if (rc < 0) { // "helper.yaml:12:9: flows[0].steps[1].do: ..."
 *             fprintf(stderr, "%s\n", err.msg);
 *             return rc;
 *         }
 *         rc = shoal_flow_submit(flow, &opts, &request, &err);
 *         if (rc == 0) {
 *             rc = shoal_flow_wait(request);
 *             const struct shoal_flow_result *result = shoal_flow_result(request);
 *             puts(rc == 0 ? result->text : result->message);
 *             shoal_flow_free(request);
 *         }
 *         shoal_flow_close(flow);
 *         return rc;
 *     }
 *
 * Thread:    open and close from one thread, close when no request is left; the rest from any
 *            thread.  The done callback runs on the flow's own thread: it must return quickly and
 *            must not call shoal_flow_wait or shoal_flow_close.
 * Ownership: open and submit give the caller an object to close or free; texts are copied.
 * Lifetime:  a result and everything it points to live until its request is freed. */
#ifndef SHOAL_SHOAL_FLOW_H
#define SHOAL_SHOAL_FLOW_H

#include "shoal/shoal_base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct shoal_flow;
struct shoal_flow_request;

struct shoal_flow_opts { /* zero means default */
    size_t size;
    const char *flow; /* which one; NULL: the only one of the file */
    /* Folder with models.json, for models that the file does not define.  NULL: as shoal_ask_opts
     * says. */
    const char *models;
    const char *collections; /* folder of collections; NULL: the file's, else the usual one */
    const char *cache_dir;   /* as in shoal_engine_opts */
    bool (*progress)(void *ctx, double part); /* as in shoal_engine_opts, for each model */
    void *progress_ctx;
    uint32_t n_threads; /* of each model; 0: by its size and the cores here */
    uint32_t reserved;  /* for a later member */
};

/* Reads the file and opens the models that the flow's steps name.  opts may be NULL.  On failure
 * *out is NULL.  SHOAL_EFORMAT: the file is wrong, with line and column.  SHOAL_ENOTFOUND: there is
 * no such file, flow or model.  SHOAL_EUNSUPPORTED: a step calls the outside. */
SHOAL_API int shoal_flow_open(struct shoal_flow **out, const char *path,
                              const struct shoal_flow_opts *opts, struct shoal_error *err);
/* NULL is fine. */
SHOAL_API void shoal_flow_close(struct shoal_flow *flow);

enum shoal_flow_state {
    SHOAL_FLOW_UNUSED,  /* no case or fallback led to the step */
    SHOAL_FLOW_DONE,    /* value_json is its result */
    SHOAL_FLOW_SKIPPED, /* its condition did not hold */
    SHOAL_FLOW_FAILED,  /* why says what happened */
    SHOAL_FLOW_BROKEN,  /* the time was over before it was done */
};

struct shoal_flow_step {
    const char *name; /* as in the file */
    const char *kind; /* "classify", "generate", ... */
    enum shoal_flow_state state;
    bool degraded;          /* its value is a fallback */
    const char *why;        /* why it failed or was replaced; "": it was not */
    uint64_t start_ns, ns;  /* since submit, and how long */
    const char *value_json; /* DONE: its result as JSON; else "" */
};

struct shoal_flow_result {
    size_t size;
    int code;            /* 0 or SHOAL_E*: cancelled, deadline, ...; then the rest is empty */
    const char *message; /* with a code: what was wrong; else "" */
    const char *text;    /* the output as text, NUL-terminated */
    size_t text_bytes;
    const char *output_json; /* the output as JSON */
    bool degraded;           /* a step failed or took too long, and a fallback took its place */
    uint64_t total_ns;
    const struct shoal_flow_step *steps; /* in the order of the file */
    size_t n_steps;
};

struct shoal_flow_request_opts { /* zero means default */
    size_t size;
    const char *text; /* ${input.text} */
    size_t text_bytes;
    /* A JSON object with the other inputs: {"room":"hall"}; NULL: none. */
    const char *input_json;
    size_t input_bytes;
    uint64_t deadline_ns; /* absolute, CLOCK_MONOTONIC; 0: the flow's own budget alone */
    void (*done)(void *ctx, const struct shoal_flow_result *result); /* called once; may be NULL */
    void *done_ctx;
};

/* On failure *request is NULL and done is not called.  SHOAL_EFORMAT: input_json is no object. */
SHOAL_API int shoal_flow_submit(struct shoal_flow *flow, const struct shoal_flow_request_opts *opts,
                                struct shoal_flow_request **request, struct shoal_error *err);
/* Ends the request soon, with SHOAL_ECANCELLED; done is still called. */
SHOAL_API void shoal_flow_cancel(struct shoal_flow_request *request);
/* Waits until the request is done; returns its code (0 or SHOAL_E*; SHOAL_EINVAL: request is NULL).
 */
SHOAL_API int shoal_flow_wait(struct shoal_flow_request *request);
/* Gives up the caller's reference (NULL is fine); before the request is done it also cancels. */
SHOAL_API void shoal_flow_free(struct shoal_flow_request *request);

/* Of a request that is done (in its callback, or after shoal_flow_wait). */
SHOAL_API const struct shoal_flow_result *
shoal_flow_result(const struct shoal_flow_request *request);

#define SHOAL_FLOW_EXPLAIN 1u /* shoal_flow_json: also the steps */

/* After the request is done: what `shoal flow run --json` prints, {"text":"...","output":...}; with
 * SHOAL_FLOW_EXPLAIN what `shoal flow trace --json` prints.  *json belongs to the caller, who frees
 * it with shoal_free; it is NUL-terminated.  On failure it is NULL; a request that failed has none,
 * and its code is returned. */
SHOAL_API int shoal_flow_json(const struct shoal_flow_request *request, unsigned flags, char **json,
                              size_t *n, struct shoal_error *err);

#ifdef __cplusplus
}
#endif

#endif

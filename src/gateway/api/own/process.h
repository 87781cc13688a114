/* process.h - POST /v1/process: asks (apps/home/ask/ask_run.h) over HTTP.
 *
 * The answer is that of `shoal ask --json`; a stream has the events "plan" (the actions), "text"
 * (pieces of the reply) and "done" (the whole answer), or "error".
 *
 * Thread: the loop's; reading has no state. */
#ifndef SHOAL_GATEWAY_API_OWN_PROCESS_H
#define SHOAL_GATEWAY_API_OWN_PROCESS_H

#include "flow/request.h"
#include "gateway/call/fields.h"
#include "wire/json_out.h"

struct call;

struct process_heard { /* where the text was spoken */
    const char *text;
    size_t text_bytes;
    float confidence; /* of the recognizer */
    double seconds;   /* of the sound */
    uint64_t ns;      /* that hearing took */
};

extern const struct field process_fields[];
extern const size_t process_n_fields;

/* Parses a body into an empty request.  lenient: unknown fields are skipped. */
SHOAL_MUST_CHECK int process_read(struct request *r, bool *stream, const cJSON *json, bool lenient,
                                  struct fields_error *e);
void process_handle(struct call *c);
/* Runs r, a REQUEST_ASK of this call, which it takes.  heard: reported with the answer; NULL: the
 * text was typed. */
void process_run(struct call *c, struct request *r, bool stream, const struct process_heard *heard);
/* The member "transcript" of an open object. */
void process_put_heard(struct json_out *j, const struct process_heard *heard);

#endif

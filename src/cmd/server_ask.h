/* server_ask.h - commands that ask a running server over HTTP: its address and key, one request and
 * its JSON answer.
 *
 * Thread:    the main thread.
 * Ownership: init gives, fini takes back; json belongs to the struct until the next request. */
#ifndef SHOAL_CMD_SERVER_ASK_H
#define SHOAL_CMD_SERVER_ASK_H

#include <cjson/cJSON.h>

#include "cmd/cmd.h"

#define SERVER_ASK_MAX_BYTES ((size_t)8 << 20)

#define SERVER_ASK_ADDRESS_DEF                                                                     \
    {                                                                                              \
        "server", 0, OPTS_TEXT, "ADDRESS", NULL, 0, 0,                                             \
            "http://HOST:PORT or unix:PATH; default: $SHOAL_SERVER, or http://127.0.0.1:8080"      \
    }

/* The options of such a command: --server, --key and --json. */
#define SERVER_ASK_DEFS                                                                            \
    SERVER_ASK_ADDRESS_DEF,                                                                        \
        {"key", 0, OPTS_TEXT, "KEY",                                                               \
         NULL,  0, 0,         "API key with administration rights; default: $SHOAL_API_KEY"},      \
    {                                                                                              \
        "json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print the server's response as JSON"              \
    }

/* The address of --server, $SHOAL_SERVER or the default. */
const char *server_ask_address(const struct opts *o);

struct server_ask {
    const struct opts *o;
    const char *server, *key;
    const char *header; /* as in http_ask.h; or NULL */
    struct buf body;    /* the last response */
    cJSON *json;        /* the response, parsed */
};

void server_ask_init(struct server_ask *r, const struct opts *o);
void server_ask_fini(struct server_ask *r);
/* Sends a request: POST with a body, or GET.  list: the array that the answer must have.  CMD_OK,
 * or an exit code after a message. */
int server_ask(struct server_ask *r, const char *path, const char *list, const char *json,
               size_t n);
/* A text of the answer, safe for a terminal: control characters become '?'.  "" if there is none.
 */
const char *server_ask_text(const cJSON *object, const char *name);
double server_ask_number(const cJSON *object, const char *name); /* 0 if there is none */

#endif

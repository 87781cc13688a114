/* tools_read.h - tools, the choice among them and calls in messages, as OpenAI and Ollama write
 * them.
 *
 * Thread:    no state.
 * Ownership: everything is copied into the request.
 * Failure:   SHOAL_EINVAL with the field. */
#ifndef SHOAL_GATEWAY_API_TOOLS_READ_H
#define SHOAL_GATEWAY_API_TOOLS_READ_H

#include "flow/request.h"
#include "gateway/call/fields.h"

#define TOOLS_READ_SCHEMA                                                                          \
    "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"function\"],"              \
    "\"properties\":{\"type\":{\"enum\":[\"function\"]},\"function\":{\"type\":\"object\","        \
    "\"required\":[\"name\"],\"properties\":{\"name\":{\"type\":\"string\"},\"description\":{"     \
    "\"type\":\"string\"},\"parameters\":{\"type\":\"object\"},\"strict\":{\"type\":\"boolean\"}}" \
    "}}}}"

/* Missing, null or empty values change nothing. tools: a list of functions. */
SHOAL_MUST_CHECK int tools_read(struct request *r, const cJSON *tools, struct fields_error *e);
/* The same in the form of /v1/responses: {"type": "function", "name": ...}, without the inner
 * object. */
SHOAL_MUST_CHECK int tools_read_flat(struct request *r, const cJSON *tools, struct fields_error *e);
/* OpenAI's fields before `tools`: functions is a list of {"name": ...}, choice (`function_call`) is
 * "auto", "none" or {"name": ...}. */
SHOAL_MUST_CHECK int tools_read_functions(struct request *r, const cJSON *functions,
                                          const cJSON *choice, struct fields_error *e);
/* `function_call` of message i: its only call. */
SHOAL_MUST_CHECK int tools_read_function_call(struct request *r, struct chat_message *m,
                                              const cJSON *call, uint32_t i,
                                              struct fields_error *e);
/* choice: "auto", "none", "required" or a function; after tools_read. */
SHOAL_MUST_CHECK int tools_read_choice(struct request *r, const cJSON *choice,
                                       struct fields_error *e);
/* Calls of message i.  Their arguments are an object, or its text. */
SHOAL_MUST_CHECK int tools_read_calls(struct request *r, struct chat_message *m, const cJSON *calls,
                                      uint32_t i, struct fields_error *e);
/* One call into *out. id may be NULL: then it is derived from its position, param. */
SHOAL_MUST_CHECK int tools_read_call(struct request *r, struct chat_call *out, const cJSON *id,
                                     const cJSON *name, const cJSON *args, const char *param,
                                     struct fields_error *e);
/* Adds the tool's name and the call's id to messages with results, where one is missing.
 */
void tools_read_names(struct chat_message *list, uint32_t n);

/* ---- for other interfaces ---- */

/* Whether a text is a JSON object. */
bool tools_read_is_object(const char *text);
/* Checks the name and the parameters of list[i], and that no tool before it has the same name. */
SHOAL_MUST_CHECK int tools_read_check(const struct chat_tool *list, uint32_t i, const char *param,
                                      struct fields_error *e);
/* "auto", "none" or "required". */
SHOAL_MUST_CHECK int tools_read_word(struct request *r, const char *word, struct fields_error *e);
/* Adds a tool to list[*n], in the arena, with room for it. */
SHOAL_MUST_CHECK int tools_read_one(struct request *r, struct chat_tool *list, uint32_t *n,
                                    const cJSON *name, const cJSON *description,
                                    const cJSON *parameters, const char *param,
                                    struct fields_error *e);
/* A value as text in the arena; NULL: out of memory. */
const char *tools_read_json(struct request *r, const cJSON *v, size_t *n);
/* The tool with this name must be called; SHOAL_EINVAL: none. */
SHOAL_MUST_CHECK int tools_read_force(struct request *r, const char *name, struct fields_error *e);

#endif

/* constraint_read.h - reads the fields that constrain an answer into a request's constraint:
 * OpenAI's response_format, llama.cpp's grammar and json_schema, vLLM's guided_* and
 * structured_outputs, Ollama's format.
 *
 * Thread:    belongs to its caller.
 * Ownership: texts are copied into the request.
 * Failure:   SHOAL_EINVAL with the field's name. Errors inside a schema or grammar are found when
 *            the model is known: flow/generate/generate.c. */
#ifndef SHOAL_GATEWAY_API_CONSTRAINT_READ_H
#define SHOAL_GATEWAY_API_CONSTRAINT_READ_H

#include "flow/request.h"
#include "gateway/call/fields.h"

struct constraint_fields { /* as they came; NULL: not given */
    const cJSON *response_format, *json_schema, *grammar, *structured_outputs;
    const cJSON *guided_json, *guided_regex, *guided_choice, *guided_grammar;
};

/* Rows of a table of fields; at: the offset of the struct above in the body's. */
#define CONSTRAINT_FIELD(at, name, help, schema)                                                   \
    {                                                                                              \
#name, FIELD_VALUE, (at) + offsetof(struct constraint_fields, name), 0, 0, help, schema    \
    }
#define CONSTRAINT_FIELDS(at)                                                                      \
    CONSTRAINT_FIELD(at, response_format,                                                          \
                     "{\"type\": \"json_object\"}, or json_schema with a schema, or text",         \
                     "{\"type\":\"object\",\"properties\":{\"type\":{\"enum\":[\"text\","          \
                     "\"json_object\",\"json_schema\"]},\"json_schema\":{\"type\":\"object\"}}}"), \
        CONSTRAINT_FIELD(at, grammar, "the answer matches this grammar, in GBNF",                  \
                         "{\"type\":\"string\"}"),                                                 \
        CONSTRAINT_FIELD(at, json_schema, "the answer is JSON of this schema",                     \
                         "{\"type\":\"object\"}"),                                                 \
        CONSTRAINT_FIELD(at, structured_outputs,                                                   \
                         "one of json, regex, choice and grammar, as vLLM has it",                 \
                         "{\"type\":\"object\"}"),                                                 \
        CONSTRAINT_FIELD(at, guided_json, "same as json_schema", "{\"type\":\"object\"}"),         \
        CONSTRAINT_FIELD(at, guided_regex, "the answer matches this regular expression",           \
                         "{\"type\":\"string\"}"),                                                 \
        CONSTRAINT_FIELD(at, guided_choice, "the answer is one of these texts",                    \
                         "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"),                  \
        CONSTRAINT_FIELD(at, guided_grammar, "same as grammar", "{\"type\":\"string\"}")

/* lenient: a response_format of another type is not an error. */
SHOAL_MUST_CHECK int constraint_read(struct request *r, const struct constraint_fields *f,
                                     bool lenient, struct fields_error *e);
/* Ollama's format: "json", a schema, or an empty value. */
SHOAL_MUST_CHECK int constraint_read_format(struct request *r, const cJSON *format,
                                            struct fields_error *e);

#endif

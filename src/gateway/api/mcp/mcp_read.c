/* mcp_read.c - see mcp_read.h. */
#include "gateway/api/mcp/mcp_read.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* Versions of the protocol; the newest first. The first one has no handshake: every message names
 * its version. The others begin with initialize. */
static const char *const versions[] = {"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26",
                                       "2024-11-05"};
#define N_VERSIONS (sizeof(versions) / sizeof(versions[0]))
#define HANDSHAKE 1u                                          /* the first version with one */
#define VERSION_KEY "io.modelcontextprotocol/protocolVersion" /* in _meta of a message */

/* A tool: its arguments become the body of a request to a path of this server. */
struct tool {
    const char *name, *path, *description, *schema;
    const char *names[4][2]; /* of an argument, and of the member that it becomes; NULL: read_search
                                looks at it */
    unsigned n_required;     /* the first n are required */
};

#define TEXT(help) "{\"type\":\"string\",\"description\":\"" help "\"}"
#define MODEL ",\"model\":" TEXT("name of a model; default: the first one that can do it")

static const struct tool tools[] = {
    {"classify",
     "/v1/classify",
     "Labels a text: its intent, topic or sentiment, with calibrated confidence.",
     "{\"type\":\"object\",\"properties\":{\"text\":" TEXT("the text") ",\"labels\":" TEXT(
         "a label set of the model; default: its own") MODEL "},\"required\":[\"text\"]}",
     {{"text", "input"}, {"labels", "labels"}, {"model", "model"}},
     1},
    {"tag",
     "/v1/entities",
     "Finds names, places, times, slots and personal data in a text.",
     "{\"type\":\"object\",\"properties\":{\"text\":" TEXT("the text") ",\"labels\":" TEXT(
         "a label set of the model; default: its own") MODEL "},\"required\":[\"text\"]}",
     {{"text", "input"}, {"labels", "labels"}, {"model", "model"}},
     1},
    {"search",
     "/v1/embeddings",
     "Finds which of the given texts best answer a query, by meaning.",
     "{\"type\":\"object\",\"properties\":{\"query\":" TEXT(
         "the query") ",\"texts\":{\"type\":\"array\",\"items\":{\"type\":"
                      "\"string\"},"
                      "\"minItems\":1,\"description\":\"texts to search\"},"
                      "\"top\":{\"type\":\"integer\",\"minimum\":1,\"description\":"
                      "\"how many are returned; default: all\"}" MODEL
                      "},\"required\":[\"query\",\"texts\"]}",
     {{"query", NULL}, {"texts", NULL}, {"top", NULL}, {"model", "model"}},
     2},
    {"ask",
     "/v1/process",
     "Turns a command or question to a home into actions, which are not carried out, and a "
     "reply.",
     "{\"type\":\"object\",\"properties\":{\"text\":" TEXT(
         "a command or a question") ",\"confirm\":" TEXT("confirmation token of actions") "},"
                                                                                          "\"requir"
                                                                                          "ed\":["
                                                                                          "\"text\""
                                                                                          "]}",
     {{"text", "text"}, {"confirm", "confirm"}},
     1},
};
#define N_TOOLS (sizeof(tools) / sizeof(tools[0]))

void mcp_put_tools(struct buf *out)
{
    buf_puts(out, "[");
    for (size_t i = 0; i < N_TOOLS; i++)
        buf_printf(out,
                   "%s{\"name\":\"%s\",\"description\":\"%s\",\"inputSchema\":%s,"
                   "\"annotations\":{\"readOnlyHint\":true}}",
                   i ? "," : "", tools[i].name, tools[i].description, tools[i].schema);
    buf_puts(out, "]");
}

void mcp_put_versions(struct buf *out)
{
    for (size_t i = 0; i < N_VERSIONS; i++)
        buf_printf(out, "%s\"%s\"", i ? "," : "[", versions[i]);
    buf_puts(out, "]");
}

static void fail(struct mcp_message *m, int error, const char *text, const char *what)
{
    m->error = error;
    snprintf(m->text, sizeof(m->text), text, what);
}

static const char *text_of(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool known_argument(const struct tool *t, const char *name, const char **to)
{
    for (size_t i = 0; i < 4 && t->names[i][0]; i++)
        if (strcmp(t->names[i][0], name) == 0) {
            *to = t->names[i][1];
            return true;
        }
    return false;
}

/* The query and the texts become the input of one request for embeddings. */
static void read_search(struct mcp_message *m, const cJSON *args)
{
    const cJSON *query = cJSON_GetObjectItemCaseSensitive(args, "query"), *v;
    const cJSON *texts = cJSON_GetObjectItemCaseSensitive(args, "texts");
    const cJSON *top = cJSON_GetObjectItemCaseSensitive(args, "top");
    int n = cJSON_GetArraySize(texts);
    bool good = cJSON_IsString(query) && cJSON_IsArray(texts) && n > 0 &&
                n <= (int)MCP_READ_MAX_TEXTS &&
                (!top || (cJSON_IsNumber(top) && top->valuedouble >= 1 && top->valuedouble <= 1e6));
    cJSON_ArrayForEach(v, texts) good = good && cJSON_IsString(v);
    if (!good) {
        fail(m, MCP_READ_INVALID_PARAMS, "search needs %s, and 'top' from 1 on",
             "'query', a text, and 'texts', 1 to 255 of them");
        return;
    }
    cJSON *input = m->body ? cJSON_AddArrayToObject(m->body, "input") : NULL;
    bool ok = input && cJSON_AddItemToArray(input, cJSON_Duplicate(query, false));
    cJSON_ArrayForEach(v, texts) ok = ok && cJSON_AddItemToArray(input, cJSON_Duplicate(v, false));
    if (!ok)
        fail(m, MCP_READ_INTERNAL_ERROR, "%s", "out of memory");
    m->texts = texts;
    m->top = top ? (uint32_t)top->valuedouble : 0;
}

static void read_call(struct mcp_message *m, const cJSON *params)
{
    const char *name = text_of(params, "name"), *to = NULL;
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(params, "arguments"), *v;
    size_t i = 0;
    while (i < N_TOOLS && (!name || strcmp(tools[i].name, name) != 0))
        i++;
    if (i == N_TOOLS) {
        fail(m, MCP_READ_INVALID_PARAMS, "unknown tool '%.64s': tools/list lists the tools",
             name ? name : "");
        return;
    }
    const struct tool *t = &tools[i];
    for (unsigned k = 0; k < t->n_required; k++)
        if (!cJSON_GetObjectItemCaseSensitive(args, t->names[k][0])) {
            fail(m, MCP_READ_INVALID_PARAMS, "the argument '%s' is missing", t->names[k][0]);
            return;
        }
    m->body = cJSON_CreateObject();
    cJSON_ArrayForEach(v, args)
    {
        if (!known_argument(t, v->string, &to)) {
            fail(m, MCP_READ_INVALID_PARAMS, "unknown argument '%.64s'", v->string);
            return;
        }
        if (!to)
            continue;
        cJSON *copy = cJSON_Duplicate(v, true);
        if (!copy || cJSON_GetObjectItemCaseSensitive(m->body, to) ||
            !cJSON_AddItemToObject(m->body, to, copy)) {
            cJSON_Delete(copy);
            fail(m, MCP_READ_INVALID_PARAMS, "unknown argument '%.64s'", v->string);
            return;
        }
    }
    m->path = t->path;
    if (strcmp(t->name, "search") == 0)
        read_search(m, args);
    if (!m->body)
        fail(m, MCP_READ_INTERNAL_ERROR, "%s", "out of memory");
}

static void read_version(struct mcp_message *m, const cJSON *params)
{
    const char *asked = text_of(params, "protocolVersion");
    m->version = versions[HANDSHAKE]; /* of an unknown one the client decides whether it goes on */
    for (size_t i = HANDSHAKE; asked && i < N_VERSIONS; i++)
        if (strcmp(versions[i], asked) == 0)
            m->version = versions[i];
    if (!asked)
        fail(m, MCP_READ_INVALID_PARAMS, "'%s' is missing", "protocolVersion");
}

/* Refuses a message of a version that we do not speak. */
static void check_version(struct mcp_message *m, const char *asked)
{
    for (size_t i = 0; asked && i < N_VERSIONS; i++)
        if (strcmp(versions[i], asked) == 0)
            return;
    if (!asked)
        return;
    m->asked = asked;
    fail(m, MCP_READ_VERSION, "the protocol version '%.32s' is not supported", asked);
}

void mcp_read(struct mcp_message *m, const cJSON *json, const char *header)
{
    static const struct {
        const char *name;
        enum mcp_method method;
    } methods[] = {{"initialize", MCP_INITIALIZE},
                   {"server/discover", MCP_DISCOVER},
                   {"ping", MCP_PING},
                   {"tools/list", MCP_LIST},
                   {"tools/call", MCP_CALL}};
    const char *version = text_of(json, "jsonrpc"), *method = text_of(json, "method");
    const cJSON *params = cJSON_GetObjectItemCaseSensitive(json, "params");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(json, "id");
    *m = (struct mcp_message){.method = MCP_NOTIFICATION};
    if (!json) {
        fail(m, MCP_READ_PARSE_ERROR, "%s", "the message is not JSON");
        return;
    }
    if (cJSON_IsString(id) || cJSON_IsNumber(id))
        m->id = id;
    bool answer = m->id && !method &&
                  (cJSON_GetObjectItemCaseSensitive(json, "result") ||
                   cJSON_GetObjectItemCaseSensitive(json, "error"));
    if (!version || strcmp(version, "2.0") != 0 || (!method && !answer) || (id && !m->id)) {
        fail(m, MCP_READ_INVALID_REQUEST, "the message is not a request of JSON-RPC %s", "2.0");
        return;
    }
    if (!m->id || answer) /* we send no requests, so responses are ignored */
        return;
    const char *own = text_of(cJSON_GetObjectItemCaseSensitive(params, "_meta"), VERSION_KEY);
    m->stateless = own != NULL;
    if (own && header && strcmp(own, header) != 0)
        fail(m, MCP_READ_INVALID_REQUEST, "MCP-Protocol-Version says '%.32s', the message another",
             header);
    else
        check_version(m, own ? own : header);
    for (size_t i = 0; m->error == 0 && i < sizeof(methods) / sizeof(methods[0]); i++)
        if (strcmp(methods[i].name, method) == 0) {
            m->method = methods[i].method;
            if (m->method == MCP_CALL)
                read_call(m, params);
            else if (m->method == MCP_INITIALIZE)
                read_version(m, params);
            return;
        }
    if (m->error == 0)
        fail(m, MCP_READ_NO_METHOD, "there is no method '%.64s'", method);
}

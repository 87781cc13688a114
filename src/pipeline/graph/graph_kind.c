/* graph_kind.c - see graph_kind.h. */
#include "pipeline/graph/graph_kind.h"

#include <string.h>

#include "pipeline/graph/graph.h"

#define N(list) (sizeof(list) / sizeof((list)[0]))
#define RECORD(list)                                                                               \
    {                                                                                              \
        .kind = GRAPH_TYPE_RECORD, .fields = (list), .n_fields = N(list)                           \
    }

static const struct graph_field label_fields[] = {{"label", &graph_type_text},
                                                  {"score", &graph_type_number}};
static const struct graph_type label = RECORD(label_fields);
static const struct graph_type labels = {.kind = GRAPH_TYPE_LIST, .of = &label};
static const struct graph_field classify_fields[] = {
    {"label", &graph_type_text}, {"score", &graph_type_number}, {"labels", &labels}};
static const struct graph_type classify = RECORD(classify_fields);

static const struct graph_field entity_fields[] = {{"label", &graph_type_text},
                                                   {"text", &graph_type_text},
                                                   {"score", &graph_type_number},
                                                   {"start", &graph_type_number},
                                                   {"end", &graph_type_number}};
static const struct graph_type entity = RECORD(entity_fields);
static const struct graph_type entities = {.kind = GRAPH_TYPE_LIST, .of = &entity};
static const struct graph_type by_label = {.kind = GRAPH_TYPE_TABLE, .of = &graph_type_text};
static const struct graph_field tag_fields[] = {
    {"entities", &entities}, {"values", &by_label}, {"count", &graph_type_number}};
static const struct graph_type tag = RECORD(tag_fields);

static const struct graph_field embed_fields[] = {{"vector", &graph_type_numbers},
                                                  {"dimensions", &graph_type_number}};
static const struct graph_type embed = RECORD(embed_fields);

static const struct graph_field passage_fields[] = {
    {"id", &graph_type_number},    {"text", &graph_type_text},   {"document", &graph_type_text},
    {"heading", &graph_type_text}, {"page", &graph_type_number}, {"score", &graph_type_number}};
static const struct graph_type passage = RECORD(passage_fields);
const struct graph_type graph_kind_passages = {.kind = GRAPH_TYPE_LIST, .of = &passage};
static const struct graph_field retrieve_fields[] = {{"text", &graph_type_text},
                                                     {"passages", &graph_kind_passages},
                                                     {"count", &graph_type_number},
                                                     {"score", &graph_type_number}};
static const struct graph_type retrieve = RECORD(retrieve_fields);

static const struct graph_field generate_fields[] = {{"text", &graph_type_text},
                                                     {"tokens", &graph_type_number},
                                                     {"cut", &graph_type_bool},
                                                     {"model", &graph_type_text}};
static const struct graph_type generate = RECORD(generate_fields);

static const struct graph_field text_fields[] = {{"text", &graph_type_text}};
static const struct graph_type text_only = RECORD(text_fields);

static const struct graph_field score_fields[] = {{"score", &graph_type_number},
                                                  {"values", &graph_type_numbers}};
static const struct graph_type score = RECORD(score_fields);

static const struct graph_field verify_fields[] = {{"supported", &graph_type_bool},
                                                   {"verdict", &graph_type_text},
                                                   {"citations", &graph_kind_passages},
                                                   {"sources", &graph_type_text},
                                                   {"unsupported", &graph_type_texts}};
static const struct graph_type verify = RECORD(verify_fields);

static const struct graph_field call_fields[] = {
    {"text", &graph_type_text}, {"json", &graph_type_any}, {"status", &graph_type_number}};
static const struct graph_type call = RECORD(call_fields);

static const struct graph_field ask_fields[] = {
    {"text", &graph_type_text}, {"actions", &graph_type_any}, {"count", &graph_type_number}};
static const struct graph_type ask = RECORD(ask_fields);

const struct graph_kind_info graph_kinds[] = {
    [GRAPH_CLASSIFY] = {"classify", "model labels text", "text", &classify, "label", false, true,
                        "the label of a text: label, score, labels (the best eight)"},
    [GRAPH_TAG] = {"tag", "model labels text", "text", &tag, NULL, false, true,
                   "entities of a text: entities, values (the first of each label), count"},
    [GRAPH_EMBED] = {"embed", "model text", "text", &embed, NULL, false, true,
                     "the vector of a text: vector, dimensions"},
    [GRAPH_RETRIEVE] = {"retrieve", "collection query count reranker", "collection query",
                        &retrieve, "text", false, true,
                        "passages of a collection: text (with their numbers), passages, count, "
                        "score"},
    [GRAPH_GENERATE] = {"generate", "model text system max_tokens temperature", "text", &generate,
                        "text", false, true, "a model's answer: text, tokens, cut, model"},
    [GRAPH_SUMMARIZE] = {"summarize", "model text max_tokens count", "text", &text_only, "text",
                         false, true, "a summary: text"},
    [GRAPH_SCORE] = {"score", "model values", "values model", &score, "score", false, true,
                     "a row of numbers scored: score, values"},
    [GRAPH_SWITCH] = {"switch", "cases", "cases", NULL, "value", false, false,
                      "the first case whose condition holds: value, case"},
    [GRAPH_MAP] = {"map", "over step", "over step", NULL, "items", false, false,
                   "a step for each item of a list: items, count"},
    [GRAPH_MERGE] = {"merge", "from how separator", "from", NULL, "value", false, false,
                     "several results as one: value"},
    [GRAPH_CALL] = {"call", "via url method topic payload command plugin qos retain retry json", "",
                    &call, "text", true, true, "an external call: text, json, status"},
    [GRAPH_TEMPLATE] = {"template", "text", "text", &text_only, "text", false, true,
                        "a text with values in it: text"},
    [GRAPH_VERIFY] = {"verify", "model text passages query", "text passages", &verify, "verdict",
                      false, true,
                      "whether passages support a text: supported, verdict, citations, sources, "
                      "unsupported"},
    [GRAPH_ASK] = {"ask", "text", "text", &ask, "text", true, true,
                   "the home flow of /v1/process: text, actions, count"},
};

_Static_assert(sizeof(graph_kinds) / sizeof(graph_kinds[0]) == GRAPH_N_KINDS, "a row for each");

/* Whether the word is in a list with blanks between its words. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p;) {
        size_t k = strcspn(p, " ");
        if (k == n && memcmp(p, word, n) == 0)
            return true;
        p += k;
        p += *p == ' ';
    }
    return false;
}

bool graph_kind_may(uint32_t kind, const char *key)
{
    return has_word("name do when timeout share fallback fallback_step on_timeout", key) ||
           has_word(graph_kinds[kind].keys, key);
}

/* pipeline_input.c - see pipeline_input.h. */
#include "pipeline/pipeline_input.h"

#include <string.h>

static struct value text_of(const struct request *r)
{
    const struct request_generate *g = &r->generate;
    if (r->kind == REQUEST_ASK)
        return value_text(r->ask.text, strlen(r->ask.text));
    if (g->chat.n_messages > 0) {
        const struct chat_message *last = &g->chat.messages[g->chat.n_messages - 1];
        return value_text(last->content ? last->content : "",
                          last->content ? last->content_bytes : 0);
    }
    if (g->n_prompts > 0 && g->prompts[0].text)
        return value_text(g->prompts[0].text, g->prompts[0].text_bytes);
    return value_text("", 0);
}

/* Whether the flow uses only the text, and it is empty. Inside another flow it may be the result of
 * a step. */
static bool lacks_text(const struct graph *g, const struct request *r, const struct value *text)
{
    if (!g->reads_input || g->n_inputs > 0 || r->depth > 0)
        return false;
    for (size_t i = 0; i < text->text.n; i++)
        if (!strchr(" \t\r\n", text->text.p[i]))
            return false;
    return true;
}

static bool fits(const struct value *v, const struct graph_type *t)
{
    static const enum value_kind kinds[] = {
        [GRAPH_TYPE_BOOL] = VALUE_BOOL,
        [GRAPH_TYPE_NUMBER] = VALUE_NUMBER,
        [GRAPH_TYPE_TEXT] = VALUE_TEXT,
        [GRAPH_TYPE_LIST] = VALUE_LIST,
    };
    if (v->kind != kinds[t->kind])
        return false;
    for (size_t i = 0; t->kind == GRAPH_TYPE_LIST && i < v->list.n; i++)
        if (!fits(&v->list.items[i], t->of))
            return false;
    return true;
}

bool pipeline_input_read(struct value *out, const struct graph *g, struct request *r,
                         struct failure *f)
{
    const struct value *given = r->input;
    struct value_member *m = arena_zalloc_n(&r->arena, g->n_inputs + 1u, sizeof(*m));
    if (!m) {
        failure_of(f, SHOAL_ENOMEM, "out of memory");
        return false;
    }
    m[0] = (struct value_member){"text", text_of(r)};
    if (lacks_text(g, r, &m[0].value)) {
        failure_set(f, FAILURE_INVALID, SHOAL_EINVAL, NULL, "empty_text",
                    "the flow '%s' needs a text, but the request's text is empty", g->name);
        return false;
    }
    for (size_t i = 0; given && i < given->map.n; i++) {
        const char *key = given->map.members[i].key;
        if (strcmp(key, "text") == 0 || !graph_type_field(&g->input_type, key, strlen(key))) {
            failure_set(f, FAILURE_INVALID, SHOAL_EINVAL, "input", "unknown_field",
                        "the flow '%s' has no input '%.60s'", g->name, key);
            return false;
        }
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const struct graph_input *in = &g->inputs[i];
        const struct value *v = given ? graph_type_member(given, in->name, strlen(in->name)) : NULL;
        if (v ? !fits(v, in->of) : !in->fallback) {
            failure_set(f, FAILURE_INVALID, SHOAL_EINVAL, "input", "bad_input",
                        "the flow '%s' needs the input '%s', %s", g->name, in->name,
                        graph_type_name(in->of));
            return false;
        }
        m[i + 1] = (struct value_member){in->name, v ? *v : in->value};
    }
    *out = (struct value){.kind = VALUE_MAP, .map = {m, g->n_inputs + 1u}};
    return true;
}

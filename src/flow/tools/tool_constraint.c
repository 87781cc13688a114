/* tool_constraint.c - see tool_constraint.h. */
#include "flow/tools/tool_constraint.h"

#include <string.h>

#include "engine/chat/chat.h"
#include "flow/tools/constraint_parts.h"

#define MAX_FORCED 8u /* calls of one answer */

static bool forced(const struct chat *c)
{
    return c->tool_choice == CHAT_TOOLS_REQUIRED || c->tool_choice == CHAT_TOOLS_ONE;
}

static bool has_strict(const struct chat *c)
{
    for (uint32_t i = 0; i < c->n_tools; i++)
        if (c->tools[i].strict)
            return true;
    return false;
}

bool tool_constraint_needed(const struct request_generate *g)
{
    return chat_has_tools(&g->chat) && (forced(&g->chat) || has_strict(&g->chat));
}

/* A map with "type": "object" behind its members. */
static struct value typed_object(struct request *r, const struct value *map)
{
    const size_t n = map->map.n;
    struct value_member *m = arena_zalloc_n(&r->arena, n + 1, sizeof(*m));
    if (!m)
        return *map;
    if (n > 0)
        memcpy(m, map->map.members, n * sizeof(*m));
    m[n] = (struct value_member){"type", value_text("object", 6)};
    return (struct value){.kind = VALUE_MAP, .map = {m, n + 1}};
}

static bool has_type(const struct value *map)
{
    for (size_t i = 0; i < map->map.n; i++)
        if (strcmp(map->map.members[i].key, "type") == 0)
            return true;
    return false;
}

/* Arguments are an object, whatever the schema leaves open. */
static struct value schema_of(struct request *r, const struct chat_tool *t, bool checked)
{
    static const struct value_member none[] = {
        {"properties", {.kind = VALUE_MAP}},
        {"additionalProperties", {.kind = VALUE_BOOL, .boolean = false}}};
    static const struct value empty = {.kind = VALUE_MAP, .map = {none, 2}},
                              any = {.kind = VALUE_MAP};
    if (t->parameters.kind != VALUE_MAP)
        return typed_object(r, &empty);
    if (!checked)
        return typed_object(r, &any);
    return has_type(&t->parameters) ? t->parameters : typed_object(r, &t->parameters);
}

/* Whether the text is one control token of the model. */
static bool is_control(const struct shoal_engine *en, const char *text)
{
    int32_t *special = NULL, *plain = NULL;
    size_t n = 0, n_plain = 0;
    bool ok =
        shoal_tokenize(en, text, strlen(text), SHOAL_TEXT_PARSE_SPECIAL, &special, &n, NULL) == 0 &&
        shoal_tokenize(en, text, strlen(text), 0, &plain, &n_plain, NULL) == 0 && n == 1 &&
        (n_plain != 1 || plain[0] != special[0]);
    shoal_free(special);
    shoal_free(plain);
    return ok;
}

int tool_constraint_set(struct request *r, const struct shoal_engine *en, struct err *e)
{
    struct request_generate *g = &r->generate;
    const struct chat *c = &g->chat;
    enum tool_format f = chat_tool_format(en);
    const struct tool_format_spec *spec = tool_format_spec(f);
    bool marked = f == TOOL_FORMAT_HERMES || f == TOOL_FORMAT_GENERIC, must = forced(c);
    if (!tool_constraint_needed(g) || (!must && !marked))
        return 0;
    if (g->constraint.kind != SHOAL_CONSTRAINT_NONE)
        return must ? err_set(e, SHOAL_EINVAL,
                              "an answer cannot be a tool call and have a format as well: leave "
                              "out tool_choice or the format")
                    : 0;
    struct constraint_part *list = arena_zalloc_n(&r->arena, c->n_tools, sizeof(*list));
    struct constraint_parts p = {.list = list, .min = 1, .max = c->one_call ? 1 : MAX_FORCED};
    int rc = list ? 0 : SHOAL_ENOMEM;
    bool each = f == TOOL_FORMAT_HERMES; /* every call has its own markers */
    for (uint32_t i = 0; i < c->n_tools && rc == 0; i++) {
        if (c->tool_choice == CHAT_TOOLS_ONE && i != c->tool)
            continue;
        struct constraint_part *at = &list[p.n++];
        at->begin =
            arena_printf(&r->arena, "%s{\"name\": \"%s\", \"%s\": ", each ? "<tool_call>\n" : "",
                         c->tools[i].name, spec->arguments);
        at->end = each ? "}\n</tool_call>" : "}";
        at->schema = schema_of(r, &c->tools[i], must || c->tools[i].strict);
    }
    p.between = each ? "\n" : ", ";
    if (spec->list) {
        bool token = !marked && is_control(en, spec->open);
        p.before_token = token ? spec->open : NULL;
        p.before = f == TOOL_FORMAT_GENERIC ? "<tool_call>[" : "[";
        p.after = f == TOOL_FORMAT_GENERIC ? "]</tool_call>" : "]";
    } else if (!each) {
        p.max = 1; /* such models write one */
    }
    if (c->tool_choice == CHAT_TOOLS_ONE)
        p.max = 1;
    /* Models also write a new line after their last call: it must not commit them to another. */
    p.trailing = each && p.max > 1 ? p.between : NULL;
    if (!must)
        p.trigger = spec->open;
    if (rc == 0 && request_rc(r) == 0)
        rc = constraint_parts_set(r, &p, e);
    else
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for the schemas of the tools");
    return rc;
}

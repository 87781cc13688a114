/* tool_parse.c - see tool_parse.h.
 *
 * A state machine reads the text byte by byte: no byte is read twice. */
#include "flow/tools/tool_parse.h"

#include <string.h>

#include <cjson/cJSON.h>

#include "wire/json_nul.h"

#define MAX_HELD_BYTES ((size_t)16 << 20)
#define ARGS_MARK "[ARGS]" /* Mistral: [TOOL_CALLS]name[ARGS]{...} */
#define MAX_NAME 256u
#define MAX_SPACES 1024u /* spaces held back around calls */

enum state {
    STATE_START,   /* of the answer: spaces, then a mark, bare JSON or text */
    STATE_TEXT,    /* text, with a beginning of a mark held back */
    STATE_OPEN,    /* after the marker: a list, an object, or a name */
    STATE_NAME,    /* Mistral: a name, up to [ARGS] */
    STATE_OBJECT,  /* in a call */
    STATE_BETWEEN, /* after a call of a list */
    STATE_AFTER,   /* after a call or a list: the closing marker, another call, or text */
};

enum member { MEMBER_OTHER, MEMBER_NAME, MEMBER_ARGUMENTS };

static void push_text(struct tool_parse *p, char c);

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* ---- reporting ---- */

static void report(struct tool_parse *p, enum tool_parse_kind kind, const char *text, size_t n)
{
    const struct tool_parse_event e = {.kind = kind,
                                       .index = p->n_calls > 0 ? p->n_calls - 1 : 0,
                                       .tool = p->tool >= 0 ? (uint32_t)p->tool : 0,
                                       .text = text,
                                       .text_bytes = n};
    if (p->held.rc < 0)
        p->rc = p->held.rc;
    if (p->rc == 0)
        p->fn(p->ctx, &e);
}

static void report_text(struct tool_parse *p, size_t n)
{
    if (n > 0)
        report(p, TOOL_PARSE_TEXT, buf_str(&p->held), n);
}

/* The first n held bytes are done with. */
static void drop(struct tool_parse *p, size_t n)
{
    memmove(p->held.data, p->held.data + n, p->held.len - n);
    p->held.len -= n;
    p->held.data[p->held.len] = '\0';
}

/* The held text is not a call. */
static void give_up(struct tool_parse *p)
{
    report_text(p, p->held.len);
    buf_clear(&p->held);
    p->state = STATE_TEXT;
    p->in_list = p->fenced = false;
}

/* ---- one call ---- */

static int find_tool(const struct tool_parse *p, const char *name, size_t n)
{
    for (uint32_t i = 0; i < p->n_tools; i++)
        if (strlen(p->tools[i].name) == n && memcmp(p->tools[i].name, name, n) == 0)
            return (int)i;
    return -1;
}

static void open_call(struct tool_parse *p)
{
    p->state = STATE_OBJECT;
    p->walk = (struct json_walk){.state = JSON_WALK_VALUE};
    p->object = p->held.len;
    p->args = p->args_end = p->sent = 0;
    p->tool = -1;
    p->n_names = p->n_args = 0;
    p->member = MEMBER_OTHER;
    p->begun = p->braceless = false;
}

static void begin_call(struct tool_parse *p)
{
    const char *name = p->tools[p->tool].name;
    p->n_calls++;
    p->begun = true;
    report(p, TOOL_PARSE_BEGIN, name, strlen(name));
}

static enum member member_of(const char *key, size_t n)
{
    static const struct {
        const char *name;
        enum member member;
    } table[] = {
        {"name", MEMBER_NAME}, {"arguments", MEMBER_ARGUMENTS}, {"parameters", MEMBER_ARGUMENTS}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strlen(table[i].name) == n && memcmp(table[i].name, key, n) == 0)
            return table[i].member;
    return MEMBER_OTHER;
}

/* A member of the call object is complete; its value ends before `end`. */
static void see_member(struct tool_parse *p, size_t end)
{
    const char *v = p->held.data + p->value;
    if (p->member == MEMBER_NAME) {
        p->n_names++;
        if (*v == '"' && end - p->value >= 2 &&
            p->value < end) /* an escaped name is not one of ours */
            p->tool = find_tool(p, v + 1, end - p->value - 2);
    } else if (p->member == MEMBER_ARGUMENTS) {
        p->n_args++;
        p->args = p->value;
        p->args_end = *v == '{' ? end : 0;
    }
    p->member = MEMBER_OTHER;
}

/* Reports new arguments of a call whose name is known. */
static void stream_args(struct tool_parse *p, size_t end)
{
    size_t from = p->begun ? p->sent : p->value;
    if (!p->stream || p->tool < 0 || p->n_names != 1 || p->n_args > 0 ||
        p->held.data[p->value] != '{' || (!p->begun && p->n_calls >= p->max_calls))
        return;
    if (!p->begun)
        begin_call(p);
    if (end > from)
        report(p, TOOL_PARSE_ARGUMENTS, p->held.data + from, end - from);
    p->sent = end;
}

/* Whether a text is one JSON object. */
static bool is_object(const char *p, size_t n)
{
    struct json_walk w = {.state = JSON_WALK_VALUE};
    size_t i = 0;
    while (i < n && is_space(p[i]))
        i++;
    if (i == n || p[i] != '{')
        return false;
    for (; i < n; i++)
        if (json_walk_push(&w, p[i]) == JSON_WALK_BAD)
            return false;
    return w.state == JSON_WALK_DONE;
}

static void report_whole(struct tool_parse *p, const char *args, size_t n)
{
    begin_call(p);
    report(p, TOOL_PARSE_ARGUMENTS, args, n);
    report(p, TOOL_PARSE_END, "", 0);
}

/* Arguments in other forms: as text, in a nested "function", or missing. False: this is not a
 * call. */
static bool take_odd(struct tool_parse *p)
{
    size_t n = p->held.len - p->object;
    cJSON *root = json_nul_parse(p->held.data + p->object, n);
    const cJSON *f = cJSON_GetObjectItemCaseSensitive(root, "function"), *at = root;
    bool ok = false;
    if (cJSON_IsObject(f))
        at = f;
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(at, "name");
    const cJSON *args = cJSON_GetObjectItemCaseSensitive(at, "arguments");
    if (!args)
        args = cJSON_GetObjectItemCaseSensitive(at, "parameters");
    if (!name && cJSON_IsString(f))
        name = f;
    p->tool =
        cJSON_IsString(name) ? find_tool(p, name->valuestring, strlen(name->valuestring)) : -1;
    if (p->tool >= 0 && (!args || cJSON_IsNull(args))) {
        report_whole(p, "{}", 2);
        ok = true;
    } else if (p->tool >= 0 && cJSON_IsString(args)) {
        ok = !strstr(args->valuestring, JSON_NUL) &&
             is_object(args->valuestring, strlen(args->valuestring));
        if (ok)
            report_whole(p, args->valuestring, strlen(args->valuestring));
    } else if (p->tool >= 0 && cJSON_IsObject(args)) {
        char *text = json_nul_print(args);
        ok = text != NULL;
        if (ok)
            report_whole(p, text, strlen(text));
        cJSON_free(text);
    }
    cJSON_Delete(root);
    return ok;
}

/* The object is complete.  False: it is no call. */
static bool take_call(struct tool_parse *p)
{
    if (p->begun) {
        report(p, TOOL_PARSE_END, "", 0);
        return true;
    }
    if (p->n_calls >= p->max_calls) /* too many: dropped */
        return p->tool >= 0;
    if (p->tool >= 0 && p->n_names == 1 && p->n_args == 1 && p->args_end > 0) {
        report_whole(p, p->held.data + p->args, p->args_end - p->args);
        return true;
    }
    return p->n_names <= 1 && p->n_args <= 1 && take_odd(p);
}

static void end_call(struct tool_parse *p)
{
    if (!take_call(p)) {
        give_up(p);
        return;
    }
    buf_clear(&p->held);
    p->state = p->in_list ? STATE_BETWEEN : STATE_AFTER;
}

/* Invalid JSON: a started call ends here. */
static void break_call(struct tool_parse *p)
{
    if (p->begun) {
        report(p, TOOL_PARSE_END, "", 0);
        drop(p, p->sent);
    }
    give_up(p);
}

/* Handles the last byte. before: the depth in front of it; end: its end in held. */
static void see_events(struct tool_parse *p, uint32_t before, size_t end)
{
    unsigned events = p->walk.events;
    if ((events & JSON_WALK_SCALAR_ENDED) && before == 1)
        see_member(p, end - 1);
    if ((events & JSON_WALK_VALUE_BEGINS) && before == 1)
        p->value = end - 1;
    if (p->walk.depth != 1)
        return;
    if (events & JSON_WALK_KEY_BEGINS)
        p->key = end;
    if (events & JSON_WALK_KEY_ENDS)
        p->member = (int)member_of(p->held.data + p->key, end - 1 - p->key);
    if (!(events & JSON_WALK_VALUE_ENDS))
        return;
    if (p->member == MEMBER_ARGUMENTS)
        stream_args(p, end);
    see_member(p, end);
}

static void push_object(struct tool_parse *p, char c)
{
    uint32_t before = p->walk.depth;
    enum json_walk_state s = json_walk_push(&p->walk, c);
    if (s == JSON_WALK_BAD) {
        break_call(p);
        push_text(p, c); /* it may begin a mark */
        return;
    }
    buf_putc(&p->held, c);
    size_t end = p->held.len;
    if (p->held.rc < 0)
        return;
    see_events(p, before, end);
    if (s == JSON_WALK_DONE)
        end_call(p);
}

/* ---- around the calls ---- */

/* Whether held, from `at`, is mark or the beginning of it. */
static bool begins(const struct tool_parse *p, size_t at, const char *mark, bool *whole)
{
    size_t n = p->held.len - at, k = strlen(mark);
    *whole = n == k;
    return n <= k && memcmp(p->held.data + at, mark, n) == 0;
}

static size_t leading_spaces(const struct tool_parse *p)
{
    size_t n = 0;
    while (n < p->held.len && is_space(p->held.data[n]))
        n++;
    return n;
}

/* The first byte after a marker, or of a bare call. */
static void open_calls(struct tool_parse *p, char c)
{
    if (is_space(c)) {
        buf_putc(&p->held, c);
    } else if (c == '[' && !p->in_list) {
        buf_putc(&p->held, c);
        p->in_list = true;
    } else if (c == ']' && p->in_list) { /* an empty list */
        buf_clear(&p->held);
        p->in_list = false;
        p->state = STATE_AFTER;
    } else if (c == '{') {
        open_call(p);
        push_object(p, c);
    } else if (strcmp(p->spec->name, "mistral") == 0 && !p->in_list) {
        p->object = p->held.len;
        p->state = STATE_NAME;
        buf_putc(&p->held, c);
    } else {
        give_up(p);
        push_text(p, c);
    }
}

static void push_name(struct tool_parse *p, char c)
{
    size_t n, k = strlen(ARGS_MARK);
    buf_putc(&p->held, c);
    n = p->held.len - p->object;
    if (n > MAX_NAME || p->held.rc < 0) {
        give_up(p);
        return;
    }
    if (n <= k || memcmp(p->held.data + p->held.len - k, ARGS_MARK, k) != 0)
        return;
    int tool = find_tool(p, p->held.data + p->object, n - k);
    if (tool < 0) {
        give_up(p);
        return;
    }
    /* The arguments are parsed as the member of an object with implicit braces. */
    open_call(p);
    p->tool = tool;
    p->n_names = 1;
    p->member = MEMBER_ARGUMENTS;
    p->walk.depth = 1;
    p->walk.objects = 1;
    p->braceless = true;
}

static void push_between(struct tool_parse *p, char c)
{
    if (is_space(c)) {
        buf_putc(&p->held, c);
    } else if (c == ',') {
        buf_clear(&p->held);
        p->state = STATE_OPEN;
    } else if (c == ']') {
        buf_clear(&p->held);
        p->in_list = false;
        p->state = STATE_AFTER;
    } else {
        give_up(p);
        push_text(p, c);
    }
}

/* After calls: drops spaces and the closing marker; then another marker, another object (for
 * formats without markers), or text. */
static void push_after(struct tool_parse *p, char c)
{
    bool whole = false;
    buf_putc(&p->held, c);
    size_t at = leading_spaces(p);
    if (at == p->held.len) {
        p->state = at > MAX_SPACES ? STATE_TEXT : p->state;
        return;
    }
    if (p->spec->close[0] && begins(p, at, p->spec->close, &whole)) {
        if (whole)
            buf_clear(&p->held);
        return;
    }
    if (p->fenced && begins(p, at, "```", &whole)) {
        if (whole) {
            buf_clear(&p->held);
            p->fenced = false;
        }
        return;
    }
    if (p->spec->open[0] && begins(p, at, p->spec->open, &whole)) {
        if (whole)
            p->state = STATE_OPEN;
        return;
    }
    char first = p->held.data[at];
    size_t skip = first == ';' || first == ',' ? 1 : 0; /* Llama 3 writes them between calls */
    while (at + skip < p->held.len && is_space(p->held.data[at + skip]))
        skip++;
    if (at + skip == p->held.len)
        return;
    if (p->spec->bare && c == '{' && at + skip + 1 == p->held.len) {
        buf_clear(&p->held);
        open_call(p);
        push_object(p, c);
        return;
    }
    p->state = STATE_TEXT;
    p->held.len--;
    push_text(p, c);
}

/* Text: all of it but the longest end that begins a mark. */
static void push_text(struct tool_parse *p, char c)
{
    const char *open = p->spec->open;
    size_t k = strlen(open);
    buf_putc(&p->held, c);
    if (k == 0)
        return;
    size_t n = k < p->held.len ? k : p->held.len;
    while (n > 0 && memcmp(p->held.data + p->held.len - n, open, n) != 0)
        n--;
    if (n < k)
        return;
    if (p->held.len > k) {
        report_text(p, p->held.len - k);
        drop(p, p->held.len - k);
    }
    p->state = STATE_OPEN;
}

/* Reports text that can no longer become part of a marker. */
static void flush_text(struct tool_parse *p)
{
    const char *open = p->spec->open;
    size_t k = strlen(open), n = k < p->held.len ? k : p->held.len;
    while (n > 0 && memcmp(p->held.data + p->held.len - n, open, n) != 0)
        n--;
    if (p->held.len == n)
        return;
    report_text(p, p->held.len - n);
    drop(p, p->held.len - n);
}

static void push(struct tool_parse *p, char c);

/* Before anything but spaces was written. */
static void push_start(struct tool_parse *p, char c)
{
    static const char *const fences[] = {"```json\n", "```\n"};
    bool whole = false;
    buf_putc(&p->held, c);
    size_t at = leading_spaces(p);
    if (at == p->held.len) {
        p->state = at > MAX_SPACES ? STATE_TEXT : p->state;
        return;
    }
    if (p->spec->open[0] && begins(p, at, p->spec->open, &whole)) {
        if (whole)
            p->state = STATE_OPEN;
        return;
    }
    for (size_t i = 0; p->spec->bare && i < 2; i++)
        if (begins(p, at, fences[i], &whole)) {
            p->fenced = whole;
            p->state = whole ? STATE_OPEN : p->state;
            return;
        }
    char first = p->held.data[at], again[64];
    size_t n = p->held.len - at;
    if (p->spec->bare && (first == '{' || first == '[') && n <= sizeof(again)) {
        memcpy(again, p->held.data + at, n); /* '[' may have been the beginning of a mark */
        p->held.len = at;
        p->state = STATE_OPEN;
        for (size_t i = 0; i < n; i++)
            push(p, again[i]);
        return;
    }
    p->state = STATE_TEXT;
    p->held.len--;
    push_text(p, c);
}

static void push(struct tool_parse *p, char c)
{
    switch (p->state) {
    case STATE_START:
        push_start(p, c);
        break;
    case STATE_TEXT:
        push_text(p, c);
        break;
    case STATE_OPEN:
        open_calls(p, c);
        break;
    case STATE_NAME:
        push_name(p, c);
        break;
    case STATE_OBJECT:
        push_object(p, c);
        if (p->state == STATE_OBJECT && p->rc == 0 && p->braceless && p->n_args == 1)
            end_call(p);
        break;
    case STATE_BETWEEN:
        push_between(p, c);
        break;
    default:
        push_after(p, c);
        break;
    }
}

void tool_parse_push(struct tool_parse *p, const char *text, size_t n)
{
    for (size_t i = 0; i < n && p->rc == 0; i++) {
        push(p, text[i]);
        if (p->held.rc < 0)
            p->rc = p->held.rc;
    }
    if (p->rc < 0)
        return;
    if (p->state == STATE_TEXT)
        flush_text(p);
    else if (p->state == STATE_OBJECT && p->member == MEMBER_ARGUMENTS && p->walk.depth > 1)
        stream_args(p, p->held.len);
}

void tool_parse_end(struct tool_parse *p)
{
    if (p->rc < 0)
        return;
    if (p->state == STATE_OBJECT) {
        break_call(p);
        return;
    }
    /* spaces and the beginning of the closing mark are not part of the answer */
    size_t at = leading_spaces(p);
    bool whole, around = p->state == STATE_AFTER || (p->in_list && p->n_calls > 0);
    if (around && (at == p->held.len || begins(p, at, p->spec->close, &whole)))
        buf_clear(&p->held);
    report_text(p, p->held.len);
    buf_clear(&p->held);
}

void tool_parse_init(struct tool_parse *p, enum tool_format f, const struct chat_tool *tools,
                     uint32_t n_tools, uint32_t max_calls, bool stream, tool_parse_fn fn, void *ctx)
{
    *p = (struct tool_parse){.spec = tool_format_spec(f),
                             .tools = tools,
                             .n_tools = n_tools,
                             .stream = stream,
                             .max_calls = max_calls ? max_calls : TOOL_PARSE_MAX_CALLS,
                             .fn = fn,
                             .ctx = ctx,
                             .state = STATE_START,
                             .tool = -1};
    buf_init(&p->held, MAX_HELD_BYTES);
}

void tool_parse_fini(struct tool_parse *p)
{
    buf_fini(&p->held);
}

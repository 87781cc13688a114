/* cmd_chat.c - shoal chat: a conversation at the terminal, or from a pipe with one turn per
 * line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file/lines.h"
#include "base/mem.h"
#include "base/plural.h"
#include "base/utf8.h"
#include "cmd/cli/line_edit.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/conversation.h"
#include "cmd/local/local.h"
#include "cmd/local/model_opts.h"
#include "cmd/local/stream.h"
#include "cmd/remote.h"
#include "flow/stages.h"
#include "wire/json_out.h"
#include "wire/json_scan.h"
#include "wire/value_json.h"

cmd_fn cmd_chat;

#define MAX_TEXT_BYTES ((size_t)64 << 20)
#define MAX_STOPS 16u
#define LEAST_ANSWER 16u /* minimum room for an answer in the context, in tokens */

static const struct opts_def defs[] = {
    {"system", 0, OPTS_TEXT, "TEXT", NULL, 0, 0, "system message"},
    {"lora", 0, OPTS_TEXT, "PATH", NULL, 0, 0,
     "with this LoRA adapter: a folder as PEFT writes it, or a GGUF file"},
    {"max-tokens", 'n', OPTS_UINT, "N", "1024", 0, 16777216,
     "maximum tokens per answer; 0: until the context is full"},
    {"stop", 0, OPTS_LIST, "TEXT", NULL, 0, 0, "stop an answer before this text; may be repeated"},
    {"var", 0, OPTS_LIST, "NAME=JSON", NULL, 0, 0,
     "set a variable of the chat template: enable_thinking=false"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object per answer, one per line"},
    {"stats", 0, OPTS_FLAG, NULL, NULL, 0, 0,
     "print speed and token counts of each answer to stderr"},
};

static const struct opts_def server_defs[] = {REMOTE_DEFS};

static const struct opts_page page = {
    .command = "chat",
    .arguments = "[MESSAGE]",
    .max_args = 1,
    .summary = "Chats with a model, using its own chat template; answers are streamed.",
    .details = "Ctrl-C stops an answer, Ctrl-D ends the chat.  A line that ends with \\ continues "
               "on the\nnext line.  At a terminal lines can be edited, and earlier ones come back "
               "with the "
               "arrow keys.\nIf stdin is a pipe, every line is a turn.  /help lists the\n"
               "commands of a chat.  With a MESSAGE, answers it and exits.",
    .groups = {OPTS_GROUP("Chat", defs), &model_opts_sampling_group, &model_opts_group_reply,
               OPTS_GROUP("Server", server_defs)},
    .examples = "  shoal chat\n"
                "  shoal chat -m model.gguf --system \"You answer in one sentence.\"\n"
                "  shoal chat --server http://edge:8080 -m smollm2\n"
                "  printf 'Hi\\nAnd in French?\\n' | shoal chat -m model.gguf --temp 0 --json\n",
};

struct dialog {
    struct sink sink; /* of the answer */
    const struct opts *o;
    struct local local;
    struct shoal_engine *engine;
    struct conversation conv;
    struct arena vars; /* of the template */
    struct sampling_opts sampling;
    const char *stops[MAX_STOPS];
    uint32_t n_stops, n_ctx;
    int interrupt_fd;
    bool tty, json;
    struct line_edit *edit; /* NULL: lines as they come */
    bool away;              /* a server answers: remote */
    struct remote_model remote;
    /* one answer */
    struct stream stream;
    struct buf text;
    int32_t *tokens;
    size_t n_tokens, cap_tokens;
    bool closed;
    bool ended; /* done and code are valid; otherwise nothing was started, and failure has the
                   reason */
    struct sink_done done;
    int code;
    struct failure failure;
};

static struct dialog *dialog_of(struct sink *s)
{
    return (struct dialog *)(void *)s; /* its first member */
}

static void on_start(struct sink *s, const struct sink_start *e)
{
    (void)s;
    (void)e;
}

static void on_token(struct sink *s, const struct sink_token *t)
{
    struct dialog *c = dialog_of(s);
    buf_put(&c->text, t->text, t->text_bytes);
    if (t->token >= 0 && c->n_tokens < c->cap_tokens)
        c->tokens[c->n_tokens++] = t->token;
    if (!c->json)
        stream_put(&c->stream, t->text, t->text_bytes);
}

static void on_broke_off(struct sink *s, const struct sink_done *d, int code)
{
    struct dialog *c = dialog_of(s);
    c->ended = true;
    c->done = *d;
    if (code == SHOAL_ECANCELLED) /* the last ones are not shown */
        c->done.generated_tokens = (uint32_t)c->n_tokens;
    c->code = code;
}

static void on_done(struct sink *s, const struct sink_done *d)
{
    on_broke_off(s, d, 0);
}

static void on_fail(struct sink *s, const struct failure *f)
{
    dialog_of(s)->failure = *f;
}

static void on_closed(struct sink *s)
{
    dialog_of(s)->closed = true;
}

static bool on_interrupt(void *ctx)
{
    struct dialog *c = ctx;
    flow_cancel(&c->sink);
    return false;
}

static const char *finish_name(const struct dialog *c)
{
    return c->done.finish == SHOAL_FINISH_STOP     ? "stop"
           : c->done.finish == SHOAL_FINISH_LENGTH ? "length"
           : c->code == SHOAL_ECANCELLED           ? "cancelled"
                                                   : "error";
}

static int put_answer(const struct dialog *c)
{
    const struct sink_done *d = &c->done;
    struct buf b;
    buf_init(&b, MAX_TEXT_BYTES);
    if (c->json) {
        struct json_out j = json_out_make(&b);
        const struct {
            const char *name;
            uint64_t v;
        } counts[] = {{"prompt_tokens", d->prompt_tokens},
                      {"cached_tokens", d->cached_tokens},
                      {"generated_tokens", d->generated_tokens}};
        json_out_object(&j);
        json_out_member_str(&j, "role", "assistant");
        json_out_member_strn(&j, "content", buf_str(&c->text), c->text.len);
        json_out_member_str(&j, "finish", finish_name(c));
        for (size_t i = 0; i < 3; i++)
            json_out_member_uint(&j, counts[i].name, counts[i].v);
        json_out_member_num(&j, "first_token_ms", (double)d->first_token_ns / 1e6);
        json_out_member_num(&j, "total_ms", (double)d->total_ns / 1e6);
        json_out_object_end(&j);
    }
    if (c->json || c->stream.last != '\n')
        buf_putc(&b, '\n');
    int rc = cmd_print(c->o->page, &b);
    buf_fini(&b);
    if (opts_flag(c->o, "stats")) {
        uint64_t ns = d->total_ns - d->first_token_ns;
        double speed = d->generated_tokens > 1 && d->first_token_ns && ns
                           ? (double)(d->generated_tokens - 1) * 1e9 / (double)ns
                           : 0;
        fprintf(stderr,
                "[%u prompt token%s, %u of them cached; first token after %.1f ms; %u token%s at "
                "%.1f/s; %s]\n",
                d->prompt_tokens, plural(d->prompt_tokens), d->cached_tokens,
                (double)d->first_token_ns / 1e6, d->generated_tokens, plural(d->generated_tokens),
                speed, finish_name(c));
    }
    return rc;
}

/* Makes the prompt; drops old turns until an answer fits after it. */
static int make_prompt(struct dialog *c, int32_t **tokens, size_t *n, struct err *e)
{
    uint32_t n_dropped = 0;
    for (;;) {
        int rc = conversation_prompt(&c->conv, tokens, n, e);
        if (rc < 0)
            return rc;
        if (*n + LEAST_ANSWER <= c->n_ctx)
            break;
        size_t too_many = *n;
        shoal_free(*tokens);
        *tokens = NULL;
        if (!conversation_forget(&c->conv))
            return err_set(
                e, SHOAL_ELIMIT,
                "%zu prompt tokens leave no room for an answer in a context of %u (see --ctx)",
                too_many, c->n_ctx);
        n_dropped++;
    }
    if (n_dropped)
        fprintf(stderr, "[the context is full: dropped the %u oldest turn%s]\n", n_dropped,
                plural(n_dropped));
    return 0;
}

/* The prompt, stops and bias belong to the dialog, which outlives the request. */
static struct request *make_request(struct dialog *c, const int32_t *tokens, size_t n)
{
    struct request *r = flow_take_request(&c->local.owner);
    struct request_prompt *prompt = r ? arena_zalloc(&r->arena, sizeof(*prompt)) : NULL;
    if (!prompt) {
        if (r)
            flow_give_request(&c->local.owner, r);
        return NULL;
    }
    *prompt = (struct request_prompt){.ids = tokens, .n_ids = n};
    r->kind = REQUEST_GENERATE;
    r->model = opts_text(c->o, "model");
    r->received_ns = clock_ns();
    r->generate.prompts = prompt;
    r->generate.n_prompts = r->generate.n = 1;
    r->generate.max_tokens = opts_u32(c->o, "max-tokens");
    r->generate.sampling = c->sampling.sampling;
    r->generate.has_seed = true;
    r->generate.stop = c->stops;
    r->generate.n_stop = c->n_stops;
    return r;
}

static int run_request(struct dialog *c, const int32_t *tokens, size_t n, struct err *e)
{
    struct request *r = make_request(c, tokens, n);
    if (!r)
        return err_set(e, SHOAL_ENOMEM, "out of memory");
    c->closed = c->ended = false;
    stages_run(&c->local.owner, r, &c->sink);
    int rc = stream_pump(&c->stream, &c->local.queue, &c->closed, STDOUT_FILENO, c->interrupt_fd,
                         on_interrupt, c, e);
    if (rc < 0)
        flow_cancel(&c->sink);
    while (!c->closed)
        (void)local_turn(&c->local, -1);
    return rc < 0 || c->ended ? rc : err_set(e, c->failure.code, "%s", c->failure.message);
}

/* ---- a server's answers ---- */

static void on_remote_text(void *ctx, const char *p, size_t n)
{
    struct dialog *c = ctx;
    buf_put(&c->text, p, n);
    c->stream.last = n > 0 ? p[n - 1] : c->stream.last;
    if (c->json)
        return;
    fwrite(p, 1, n, stdout);
    fflush(stdout);
}

/* The conversation is sent with each question: the server keeps none. */
static int run_remote(struct dialog *c, struct err *e)
{
    struct remote_model *r = &c->remote;
    struct buf body;
    buf_init(&body, MAX_TEXT_BYTES);
    struct json_out j = json_out_make(&body);
    json_out_object(&j);
    json_out_member_array(&j, "messages");
    for (size_t i = 0; i < c->conv.n; i++) {
        json_out_object(&j);
        json_out_member_str(&j, "role", c->conv.messages[i].role);
        json_out_member_str(&j, "content", c->conv.messages[i].text);
        json_out_object_end(&j);
    }
    json_out_array_end(&j);
    remote_put_options(&j, c->o);
    json_out_object_end(&j);
    int rc = body.rc < 0 ? err_set(e, body.rc, "the conversation is too long: /reset begins anew")
                         : remote_run(r, "/v1/chat/completions", &body, e);
    buf_fini(&body);
    if (rc < 0)
        return rc;
    c->code = r->cancelled ? SHOAL_ECANCELLED : 0;
    c->done = (struct sink_done){.finish = strcmp(r->finish, "stop") == 0     ? SHOAL_FINISH_STOP
                                           : strcmp(r->finish, "length") == 0 ? SHOAL_FINISH_LENGTH
                                                                              : SHOAL_FINISH_ERROR,
                                 .prompt_tokens = r->prompt_tokens,
                                 .cached_tokens = r->cached_tokens,
                                 .generated_tokens = r->generated_tokens,
                                 .first_token_ns = r->first_token_ns,
                                 .total_ns = r->total_ns};
    return ferror(stdout) ? err_set(e, SHOAL_EIO, "cannot write: %m") : 0;
}

static int turn_away(struct dialog *c, const char *line, size_t n)
{
    struct err e = {0};
    bool dead = false;
    stream_init(&c->stream);
    buf_clear(&c->text);
    int rc = conversation_add(&c->conv, "user", line, n, &e);
    if (rc == 0) {
        rc = run_remote(c, &e);
        dead = rc == SHOAL_EIO && ferror(stdout);
        if (rc < 0)
            conversation_pop(&c->conv);
    }
    if (rc == 0) {
        dead = put_answer(c) != CMD_OK;
        rc = conversation_add(&c->conv, "assistant", buf_str(&c->text), c->text.len, &e);
    }
    stream_fini(&c->stream);
    if (rc < 0)
        cmd_fail(c->o->page, "%s", e.msg);
    return dead ? CMD_FAILED : rc < 0 && !c->tty ? CMD_FAILED : CMD_OK;
}

/* One question and its answer.  Errors are printed and the chat continues, unless stdout is
 * closed. */
static int turn(struct dialog *c, const char *line, size_t n_line)
{
    struct err e = {0};
    int32_t *prompt = NULL;
    size_t n = 0;
    bool dead = false;
    if (c->away)
        return turn_away(c, line, n_line);
    stream_init(&c->stream);
    buf_clear(&c->text);
    c->n_tokens = 0;
    int rc = conversation_add(&c->conv, "user", line, n_line, &e);
    if (rc == 0) {
        rc = make_prompt(c, &prompt, &n, &e);
        if (rc == 0) {
            rc = run_request(c, prompt, n, &e);
            dead = rc == SHOAL_EIO;
        }
        if (rc == 0) {
            dead = put_answer(c) != CMD_OK;
            rc = conversation_answer(&c->conv, prompt, n, c->tokens, c->n_tokens, buf_str(&c->text),
                                     c->text.len, &e);
        } else {
            conversation_pop(&c->conv);
        }
    }
    stream_fini(&c->stream);
    shoal_free(prompt);
    if (rc < 0)
        cmd_fail(c->o->page, "%s", e.msg);
    return dead ? CMD_FAILED : rc < 0 && !c->tty ? CMD_FAILED : CMD_OK;
}

/* ---- commands ------------------------------------------------------------------------------- */

static void save(const struct dialog *c, const char *path)
{
    struct buf b;
    if (!path[0]) {
        fprintf(stderr, "missing file name: /save FILE\n");
        return;
    }
    buf_init(&b, MAX_TEXT_BYTES);
    conversation_json(&c->conv, &b);
    FILE *f = fopen(path, "we");
    bool ok = f && fwrite(buf_str(&b), 1, b.len, f) == b.len;
    ok = f && fclose(f) == 0 && ok;
    if (ok)
        fprintf(stderr, "%zu message%s saved to %s\n", c->conv.n, plural(c->conv.n), path);
    else
        fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
    buf_fini(&b);
}

static bool word(const char *line, const char *command, const char **rest)
{
    size_t n = strlen(command);
    if (strncmp(line, command, n) != 0 || (line[n] && line[n] != ' '))
        return false;
    *rest = line + n + strspn(line + n, " ");
    return true;
}

/* Runs a line that starts with a slash; false: /exit. */
static bool command(struct dialog *c, const char *line)
{
    struct err e = {0};
    const char *rest;
    if (word(line, "/help", &rest)) {
        fprintf(stderr, "/reset         start a new conversation\n"
                        "/system TEXT   set the system message; without TEXT: remove it\n"
                        "/save FILE     save the conversation as JSON\n"
                        "/exit          leave the chat (also Ctrl-D)\n"
                        "//...          send a message that starts with a slash\n"
                        "a line that ends with \\ continues on the next; Ctrl-C stops an answer\n");
    } else if (word(line, "/reset", &rest)) {
        conversation_reset(&c->conv);
        fprintf(stderr, "started a new conversation\n");
    } else if (word(line, "/system", &rest)) {
        if (conversation_system(&c->conv, rest, &e) < 0)
            fprintf(stderr, "%s\n", e.msg);
    } else if (word(line, "/save", &rest)) {
        save(c, rest);
    } else if (word(line, "/exit", &rest) || word(line, "/quit", &rest)) {
        return false;
    } else {
        fprintf(stderr, "unknown command %s; /help lists the commands\n", line);
    }
    return true;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* The next line, edited if it is typed.  Returns like lines_next. */
static int next_line(struct dialog *c, struct lines *in, bool more, const char **line, size_t *n,
                     struct err *e)
{
    char *text = NULL;
    if (c->edit)
        return line_edit_next(c->edit, more ? ". " : "> ", line, n);
    if (c->tty) {
        fputs(more ? ". " : "> ", stderr);
        fflush(stderr);
    }
    int got = lines_next(in, c->interrupt_fd, &text, n, e);
    *line = text;
    return got;
}

/* Reads the next message: a line, or several joined by backslashes.  Returns like lines_next. */
static int read_message(struct dialog *c, struct lines *in, struct buf *message, struct err *e)
{
    const char *line;
    size_t n;
    buf_clear(message);
    for (;;) {
        int got = next_line(c, in, message->len > 0, &line, &n, e);
        if (got == LINES_INTERRUPT) {
            (void)term_interrupted(c->interrupt_fd);
            if (!c->tty)
                return got;
            fputs("\n(press Ctrl-D or type /exit to leave the chat)\n", stderr);
            buf_clear(message);
            continue;
        }
        if (got != LINES_LINE)
            return got;
        bool more = n > 0 && line[n - 1] == '\\';
        buf_put(message, line, more ? n - 1 : n);
        if (!more)
            return message->rc < 0 ? err_set(e, message->rc, "message") : LINES_LINE;
        buf_putc(message, '\n');
    }
}

static int loop(struct dialog *c)
{
    struct lines in;
    struct buf message;
    struct err e = {0};
    int rc = CMD_OK, got = LINES_LINE;
    lines_init(&in, STDIN_FILENO);
    c->edit = c->tty ? line_edit_open("chat-history", c->interrupt_fd) : NULL;
    buf_init(&message, MAX_TEXT_BYTES);
    while (rc == CMD_OK) {
        got = read_message(c, &in, &message, &e);
        if (got != LINES_LINE)
            break;
        const char *text = buf_str(&message);
        if (message.len == 0)
            continue;
        if (text[0] == '/' && text[1] != '/') {
            if (!command(c, text))
                break;
        } else {
            rc = turn(c, text + (text[0] == '/'), message.len - (text[0] == '/'));
        }
    }
    if (got < 0)
        rc = cmd_fail(c->o->page, "%s", e.msg);
    else if (got == LINES_INTERRUPT)
        rc = CMD_INTERRUPTED;
    else if (got == LINES_END && c->tty)
        fputc('\n', stderr);
    line_edit_close(c->edit);
    lines_fini(&in);
    buf_fini(&message);
    return rc;
}

static int read_stops(struct dialog *c, bool has_template)
{
    /* A model without its own template may know ChatML only as text. */
    static const char *const chatml[] = {"<|im_end|>", "<|im_start|>"};
    const char *const *list;
    size_t n = opts_list(c->o, "stop", &list);
    if (n + 2 > MAX_STOPS)
        return opts_usage(c->o->page, "--stop is given more than %u times", MAX_STOPS - 2);
    for (size_t i = 0; i < n; i++)
        c->stops[c->n_stops++] = list[i];
    for (size_t i = 0; !has_template && i < 2; i++)
        c->stops[c->n_stops++] = chatml[i];
    return CMD_OK;
}

/* The value of NAME=JSON; false: invalid. */
static bool read_var(struct dialog *c, const char *text, struct value_member *out)
{
    const char *eq = strchr(text, '=');
    struct json_scan scan;
    struct err e;
    size_t n;
    if (!eq || eq == text || json_scan(&scan, eq + 1, strlen(eq + 1), SIZE_MAX, &e) < 0)
        return false;
    const char *name = arena_printf(&c->vars, "%.*s", (int)(eq - text), text);
    cJSON *value = cJSON_ParseWithOpts(eq + 1, NULL, true);
    out->key = utf8_repaired(&c->vars, name, strlen(name), &n);
    out->value = value_json_of(&c->vars, value);
    const bool ok = value && c->vars.rc == 0;
    cJSON_Delete(value);
    return ok;
}

static int read_vars(struct dialog *c)
{
    const char *const *list;
    size_t n = opts_list(c->o, "var", &list);
    struct value_member *vars = arena_zalloc_n(&c->vars, n, sizeof(*vars));
    for (size_t i = 0; vars && i < n; i++)
        if (!read_var(c, list[i], &vars[i]))
            return opts_usage(c->o->page, "--var is %s, expected NAME=JSON: thinking=false",
                              list[i]);
    c->conv.vars = vars;
    c->conv.n_vars = vars ? n : 0;
    return c->vars.rc < 0 ? cmd_fail(c->o->page, "out of memory") : CMD_OK;
}

/* Tries the template, so that a broken one, or one that rejects a system message, is reported
 * before the user types anything. */
static int try_template(struct dialog *c)
{
    struct err e = {0};
    int32_t *tokens = NULL;
    size_t n;
    int rc = conversation_system(&c->conv, opts_text(c->o, "system"), &e);
    if (rc == 0)
        rc = conversation_add(&c->conv, "user", "Hi", 2, &e);
    if (rc == 0) {
        rc = conversation_prompt(&c->conv, &tokens, &n, &e);
        conversation_pop(&c->conv);
    }
    shoal_free(tokens);
    return rc < 0 ? cmd_fail(c->o->page, "%s", e.msg) : CMD_OK;
}

static int start_away(struct dialog *c)
{
    struct err e = {0};
    int rc = remote_init(&c->remote, c->o, c->interrupt_fd);
    if (rc == CMD_OK && opts_given(c->o, "var"))
        rc = opts_usage(c->o->page, "--var works with a model of this process: leave it out, or "
                                    "leave out the server");
    if (rc != CMD_OK)
        return rc;
    c->remote.text = on_remote_text;
    c->remote.ctx = c;
    conversation_init(&c->conv, NULL);
    if (conversation_system(&c->conv, opts_text(c->o, "system"), &e) < 0)
        return cmd_fail(c->o->page, "%s", e.msg);
    if (c->tty)
        fprintf(stderr, "%s%s; /help lists the commands%s\n", term_style(STDERR_FILENO, TERM_DIM),
                c->remote.server, term_style(STDERR_FILENO, TERM_PLAIN));
    return c->o->n_args > 0 ? turn(c, c->o->args[0], strlen(c->o->args[0])) : loop(c);
}

static int start(struct dialog *c)
{
    struct shoal_engine_info info = {.size = sizeof(info)};
    const struct shoal_engine_opts base = {.size = sizeof(base), .max_tasks = 1};
    struct err e = {0};
    int rc = model_opts_open(c->o, &base, c->interrupt_fd, &c->engine);
    if (rc != CMD_OK)
        return rc;
    if (local_open(&c->local, &e) < 0 ||
        local_lend(&c->local, opts_text(c->o, "model"), NULL, c->engine, &e) < 0 ||
        local_adapt(&c->local, opts_text(c->o, "model"), opts_text(c->o, "lora"), c->engine, &e) <
            0)
        return cmd_fail(c->o->page, "%s", e.msg);
    shoal_engine_info(c->engine, &info);
    conversation_init(&c->conv, c->engine);
    c->n_ctx = info.n_ctx;
    c->cap_tokens = info.n_ctx;
    c->tokens = mem_zalloc_n(c->cap_tokens, sizeof(*c->tokens));
    if (!c->tokens)
        return cmd_fail(c->o->page, "out of memory");
    rc = read_stops(c, info.chat_template != NULL);
    if (rc == CMD_OK)
        rc = read_vars(c);
    if (rc == CMD_OK)
        rc = try_template(c);
    if (rc == CMD_OK && c->tty)
        fprintf(stderr, "%s%s, context of %u tokens; /help lists the commands%s%s\n",
                term_style(STDERR_FILENO, TERM_DIM), info.name[0] ? info.name : info.arch,
                info.n_ctx,
                info.chat_template ? "" : "\nthe model has no chat template: using ChatML",
                term_style(STDERR_FILENO, TERM_PLAIN));
    if (rc == CMD_OK && c->o->n_args > 0)
        return turn(c, c->o->args[0], strlen(c->o->args[0]));
    return rc == CMD_OK ? loop(c) : rc;
}

int cmd_chat(int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    if (!cmd_begin(&o, &page, argc, argv, &rc))
        return rc;
    static const struct sink_ops ops = {.start = on_start,
                                        .token = on_token,
                                        .done = on_done,
                                        .fail = on_fail,
                                        .closed = on_closed,
                                        .broke_off = on_broke_off};
    struct dialog c = {
        .sink = {.ops = &ops}, .o = &o, .json = opts_flag(&o, "json"), .interrupt_fd = -1};
    c.tty = o.n_args == 0 && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    buf_init(&c.text, MAX_TEXT_BYTES);
    arena_init(&c.vars, MAX_TEXT_BYTES);
    rc = model_opts_sampling_read(&o, &c.sampling);
    if (rc == CMD_OK) {
        c.interrupt_fd = term_catch_interrupt();
        c.away = remote_server(&o) != NULL;
        rc = c.away ? start_away(&c) : start(&c);
    }
    if (c.away)
        remote_fini(&c.remote);
    conversation_fini(&c.conv);
    local_close(&c.local);
    shoal_engine_close(c.engine);
    term_release_interrupt(c.interrupt_fd);
    model_opts_sampling_fini(&c.sampling);
    buf_fini(&c.text);
    arena_fini(&c.vars);
    mem_free(c.tokens);
    opts_fini(&o);
    return rc;
}

/* rollout_score.c - see rollout_score.h. */
#include "cmd/cluster/rollout_score.h"

#include <stdio.h>
#include <string.h>

#include "cluster/control/desired.h"
#include "cmd/server_ask.h"
#include "wire/json_out.h"

#define MAX_FILE_BYTES ((size_t)64 << 20)
#define MAX_ANSWER_TOKENS 64u

/* One line of the file: what to ask, and the right answer. */
struct example {
    const char *input, *right;
    bool generate;
};

static bool read_example(struct example *x, const cJSON *line)
{
    const char *label = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "label"));
    const char *answer = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, "answer"));
    x->generate = !label;
    x->right = label ? label : answer;
    x->input =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(line, label ? "input" : "prompt"));
    return x->right && x->input;
}

/* Calls fn for every line; it returns an exit code.  *n: lines. */
static int each(const struct opts *o, uint32_t *n, int (*fn)(void *ctx, const struct example *x),
                void *ctx)
{
    const char *file = opts_text(o, "labels");
    struct buf b;
    buf_init(&b, MAX_FILE_BYTES);
    int rc = cmd_read_text(o, NULL, file, &b);
    *n = 0;
    for (char *p = rc == CMD_OK ? (char *)(uintptr_t)buf_str(&b) : NULL, *end; p && *p; p = end) {
        end = p + strcspn(p, "\n");
        size_t bytes = (size_t)(end - p);
        end += *end != '\0';
        if (strspn(p, " \t\r") >= bytes)
            continue;
        struct example x;
        cJSON *line = cJSON_ParseWithLength(p, bytes);
        ++*n;
        if (!read_example(&x, line))
            rc = cmd_fail(o->page,
                          "%s, input %u: expected {\"input\": ..., \"label\": ...} or "
                          "{\"prompt\": ..., \"answer\": ...}",
                          file, *n);
        else if (fn)
            rc = fn(ctx, &x);
        cJSON_Delete(line);
        if (rc != CMD_OK)
            break;
    }
    if (rc == CMD_OK && *n == 0)
        rc = cmd_fail(o->page, "%s has no labelled inputs", file);
    buf_fini(&b);
    return rc;
}

struct scoring {
    struct server_ask ask;
    const char *model;
    uint32_t n_right;
};

static void put_question(struct buf *b, const struct scoring *s, const struct example *x)
{
    struct json_out j = json_out_make(b);
    json_out_object(&j);
    json_out_member_str(&j, "model", s->model);
    json_out_member_str(&j, x->generate ? "prompt" : "input", x->input);
    if (x->generate) {
        json_out_member_uint(&j, "temperature", 0);
        json_out_member_uint(&j, "max_tokens", MAX_ANSWER_TOKENS);
    }
    json_out_object_end(&j);
}

static int try_one(void *ctx, const struct example *x)
{
    struct scoring *s = ctx;
    const char *list = x->generate ? "choices" : "data";
    struct buf b;
    buf_init(&b, SERVER_ASK_MAX_BYTES);
    put_question(&b, s, x);
    int rc = b.rc < 0 ? cmd_fail(s->ask.o->page, "%s", err_text(b.rc))
                      : server_ask(&s->ask, x->generate ? "/v1/completions" : "/v1/classify", list,
                                   b.data, b.len);
    buf_fini(&b);
    if (rc != CMD_OK)
        return rc;
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(s->ask.json, list), 0);
    const char *got = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(first, x->generate ? "text" : "label"));
    got = got ? got + strspn(got, " \n") : "";
    s->n_right +=
        x->generate ? strncmp(got, x->right, strlen(x->right)) == 0 : strcmp(got, x->right) == 0;
    return CMD_OK;
}

static int score_version(const struct opts *o, const char *model, const uint8_t *sum, uint32_t *out)
{
    struct scoring s = {.model = model};
    char hex[2 * SHA256_BYTES + 1], header[128];
    uint32_t n = 0;
    server_ask_init(&s.ask, o);
    sha256_hex(hex, sum);
    snprintf(header, sizeof(header), "x-shoal-version: %s", hex);
    s.ask.header = header;
    int rc = each(o, &n, try_one, &s);
    server_ask_fini(&s.ask);
    *out = n ? (uint32_t)(1000.0 * s.n_right / n + 0.5) : 0;
    return rc;
}

int rollout_score_check(const struct opts *o)
{
    uint32_t n;
    return each(o, &n, NULL, NULL);
}

int rollout_score(const struct opts *o, const struct desired_rollout *r, uint32_t *from,
                  uint32_t *to)
{
    int rc = score_version(o, r->model, r->from, from);
    return rc == CMD_OK ? score_version(o, r->model, r->to, to) : rc;
}

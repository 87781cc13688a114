/* generate.c - continues a text with a model, token by token.
 *
 * cc generate.c -o generate $(pkg-config --cflags --libs shoal)
 * ./generate model.gguf "Once upon a time" 40 */
#include <shoal/shoal.h>
#include <stdio.h>
#include <stdlib.h>

/* Called on the engine's thread for every token, and once at the end. */
static void show(void *ctx, const struct shoal_event *event)
{
    FILE *out = ctx;
    if (event->kind == SHOAL_EVENT_TOKEN) {
        fwrite(event->text, 1, event->text_bytes, out);
        fflush(out);
    } else if (event->finish != SHOAL_FINISH_ERROR) {
        fprintf(stderr, "%u prompt tokens, %u generated in %.1f ms\n", event->prompt_tokens,
                event->generated_tokens, (double)event->total_ns / 1e6);
    }
}

static int generate(struct shoal_engine *engine, const char *prompt, uint32_t max_tokens,
                    struct shoal_error *err)
{
    int32_t *tokens;
    size_t n_tokens;
    struct shoal_task *task;
    int rc = shoal_tokenize(engine, prompt, strlen(prompt), SHOAL_TEXT_ADD_SPECIAL, &tokens,
                            &n_tokens, err);
    if (rc < 0)
        return rc;
    struct shoal_task_opts opts = {
        .size = sizeof(opts),
        .tokens = tokens,
        .n_tokens = (uint32_t)n_tokens,
        .max_tokens = max_tokens,
        .event = show,
        .event_ctx = stdout,
    };
    rc = shoal_task_submit(engine, &opts, &task, err);
    shoal_free(tokens); /* the task has its own copy */
    if (rc < 0)
        return rc;
    rc = shoal_task_wait(task);
    shoal_task_free(task);
    if (rc < 0 && err) {
        err->code = rc;
        snprintf(err->msg, sizeof(err->msg), "%s", shoal_error_text(rc));
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct shoal_engine *engine;
    struct shoal_error err;
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL PROMPT TOKENS\n", argv[0]);
        return 2;
    }
    int rc = shoal_engine_open(&engine, argv[1], NULL, &err);
    if (rc == 0) {
        rc = generate(engine, argv[2], (uint32_t)strtoul(argv[3], NULL, 10), &err);
        shoal_engine_close(engine);
    }
    if (rc < 0)
        fprintf(stderr, "%s: %s\n", argv[0], err.msg);
    return rc < 0 ? 1 : 0;
}

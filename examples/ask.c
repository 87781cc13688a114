/* ask.c - asks the models that come with Shoal: prints the actions as JSON and the reply.
 *
 * cc ask.c -o ask $(pkg-config --cflags --libs shoal)
 * ./ask "turn off the kitchen lights" */
#include <shoal/shoal.h>
#include <stdio.h>

/* Called on threads of the library: first the actions, then the reply in pieces. */
static void show(void *ctx, const struct shoal_ask_event *event)
{
    FILE *out = ctx;
    if (event->kind == SHOAL_ASK_EVENT_TEXT) {
        fwrite(event->text, 1, event->text_bytes, out);
        fflush(out);
    }
}

static int ask(struct shoal_ask *flow, const char *text, struct shoal_error *err)
{
    struct shoal_ask_request *request;
    char *json;
    size_t n;
    struct shoal_ask_request_opts opts = {
        .size = sizeof(opts),
        .text = text,
        .text_bytes = strlen(text),
        .event = show,
        .event_ctx = stderr,
    };
    int rc = shoal_ask_submit(flow, &opts, &request, err);
    if (rc < 0)
        return rc;
    rc = shoal_ask_wait(request);
    if (rc < 0) {
        err->code = rc;
        snprintf(err->msg, sizeof(err->msg), "%s", shoal_error_text(rc));
    } else if ((rc = shoal_ask_json(request, 0, &json, &n, err)) == 0) {
        fputc('\n', stderr);
        printf("%s\n", json);
        shoal_free(json);
    }
    shoal_ask_free(request);
    return rc;
}

int main(int argc, char **argv)
{
    struct shoal_ask *flow;
    struct shoal_error err;
    if (argc != 2) {
        fprintf(stderr, "usage: %s TEXT\n", argv[0]);
        return 2;
    }
    int rc = shoal_ask_open(&flow, NULL, &err);
    if (rc == 0) {
        rc = ask(flow, argv[1], &err);
        shoal_ask_close(flow);
    }
    if (rc < 0)
        fprintf(stderr, "%s: %s\n", argv[0], err.msg);
    return rc < 0 ? 1 : 0;
}

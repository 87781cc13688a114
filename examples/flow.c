/* flow.c - runs a flow of a YAML file over a text; prints its answer, and what each step did.
 *
 * cc flow.c -o flow $(pkg-config --cflags --libs shoal)
 * ./flow flows/helper.yaml "what is the weather like in Bern tomorrow" */
#include <shoal/shoal.h>
#include <stdio.h>

static void show(const struct shoal_flow_result *result)
{
    static const char *const states[] = {"unused", "done", "skipped", "failed", "broken off"};
    for (size_t i = 0; i < result->n_steps; i++) {
        const struct shoal_flow_step *step = &result->steps[i];
        fprintf(stderr, "%-10s %-9s %-10s %7.1f ms  %s%s\n", step->name, step->kind,
                states[step->state], (double)step->ns / 1e6, step->value_json, step->why);
    }
    printf("%s\n", result->text);
}

static int run(struct shoal_flow *flow, const char *text, struct shoal_error *err)
{
    struct shoal_flow_request *request;
    struct shoal_flow_request_opts opts = {
        .size = sizeof(opts), .text = text, .text_bytes = strlen(text)};
    int rc = shoal_flow_submit(flow, &opts, &request, err);
    if (rc < 0)
        return rc;
    rc = shoal_flow_wait(request);
    const struct shoal_flow_result *result = shoal_flow_result(request);
    if (rc == 0)
        show(result);
    else
        snprintf(err->msg, sizeof(err->msg), "%s", result->message);
    shoal_flow_free(request); /* also frees the result */
    return rc;
}

int main(int argc, char **argv)
{
    struct shoal_flow *flow;
    struct shoal_error err;
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE TEXT\n", argv[0]);
        return 2;
    }
    int rc = shoal_flow_open(&flow, argv[1], NULL, &err);
    if (rc == 0) {
        rc = run(flow, argv[2], &err);
        shoal_flow_close(flow);
    }
    if (rc < 0)
        fprintf(stderr, "%s: %s\n", argv[0], err.msg);
    return rc < 0 ? 1 : 0;
}

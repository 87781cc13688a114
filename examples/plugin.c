/* plugin.c - a plug-in for flows: counts the words of its payload and the calls so far.
 *
 *   cc -shared -fPIC -o plugin.so plugin.c
 *
 *   flows:
 *     - name: words
 *       output: ${count.json.words} words
 *       steps:
 *         - {name: count, do: call, via: plugin, plugin: /opt/plugins/plugin.so,
 *            payload: "${input.text}", json: true}
 *   flows_allow: {plugins: [/opt/plugins]} */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include <shoal/shoal_plugin.h>

struct state {
    unsigned n_calls; /* calls in this process */
};

static int open_words(void **state)
{
    *state = calloc(1, sizeof(struct state));
    return *state ? 0 : -1;
}

static int run_words(void *state, struct shoal_plugin_call *call)
{
    struct state *s = state;
    unsigned words = 0;
    int inside = 0;
    char text[96];
    for (size_t i = 0; i < call->payload_bytes; i++) {
        int blank = isspace((unsigned char)call->payload[i]);
        words += !blank && !inside;
        inside = !blank;
    }
    if (words == 0) {
        call->fail(call, "there is no word in it");
        return -1;
    }
    int n = snprintf(text, sizeof(text), "{\"words\": %u, \"call\": %u}", words, ++s->n_calls);
    return call->answer(call, text, (size_t)n);
}

static void close_words(void *state)
{
    free(state);
}

SHOAL_PLUGIN_EXPORT const struct shoal_plugin *shoal_plugin(void);

const struct shoal_plugin *shoal_plugin(void)
{
    static const struct shoal_plugin table = {.size = sizeof(table),
                                              .version = SHOAL_PLUGIN_VERSION,
                                              .open = open_words,
                                              .run = run_words,
                                              .close = close_words};
    return &table;
}

/* bench_drafts.c - what guesses of repeated tokens (engine/decode/draft.h) save and cost: answers
 * of one model with and without them, in turn, alone and four at once.
 *
 * usage: bench_drafts MODEL [ROUNDS [ANSWER]]        a chat model with ChatML's marks, such as
 * SmolLM2 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine_state.h"
#include "shoal/shoal.h"

enum { MAX_ROUNDS = 32, MOST = 4 };

#define LIST                                                                                       \
    "id,room,device,state,value\\n1,kitchen,light,on,40\\n2,kitchen,blind,open,100\\n"             \
    "3,hall,light,off,0\\n4,bedroom,heating,on,19\\n5,bedroom,light,off,0\\n"                      \
    "6,office,light,on,80\\n7,office,fan,on,2\\n8,garage,door,closed,0\\n"

static const struct work {
    const char *name, *prompt, *schema;
    uint32_t max_tokens;
} works[] = {
    {"copy",
     "<|im_start|>user\nRepeat this text exactly:\nThe harbour master counts every boat twice, "
     "once "
     "at dawn and once at dusk, and writes the numbers into a green book. In winter there are nine "
     "boats, in summer there are forty, and nobody has ever asked to see the book. The harbour "
     "master does not mind. He says that a number which is written down is safe.<|im_end|>\n"
     "<|im_start|>assistant\nThe harbour master counts every boat twice,",
     NULL, 80},
    {"edit",
     "<|im_start|>user\nHere is a program. Rename total to sum and print it again.\n\ndef "
     "mean(values):\n    total = 0\n    for value in values:\n        total = total + value\n    "
     "return total / len(values)\n\ndef spread(values):\n    total = 0\n    for value in values:\n "
     "       total = total + (value - mean(values)) ** 2\n    return total / len(values)\n"
     "<|im_end|>\n<|im_start|>assistant\ndef mean(values):\n",
     NULL, 96},
    {"structured",
     "<|im_start|>user\nTurn the rows into JSON.\n" LIST "<|im_end|>\n<|im_start|>assistant\n",
     "{\"type\":\"array\",\"minItems\":6,\"maxItems\":6,\"items\":{\"type\":\"object\","
     "\"properties\":{\"room\":{\"type\":\"string\",\"maxLength\":12},\"device\":{\"type\":"
     "\"string\",\"maxLength\":12},\"state\":{\"enum\":[\"on\",\"off\",\"open\",\"closed\"]}},"
     "\"required\":[\"room\",\"device\",\"state\"],\"additionalProperties\":false}}",
     160},
    {"free",
     "<|im_start|>user\nTell me a story about a lighthouse keeper who learns to cook.<|im_end|>\n"
     "<|im_start|>assistant\n",
     NULL, 128},
};

struct answer {
    int32_t tokens[256];
    uint32_t n;
    uint64_t first_ns, end_ns;
};

static void on_event(void *ctx, const struct shoal_event *ev)
{
    struct answer *a = ctx;
    a->end_ns = clock_ns();
    if (ev->kind == SHOAL_EVENT_TOKEN && ev->token >= 0 && a->n < 256) {
        if (a->n == 0)
            a->first_ns = a->end_ns;
        a->tokens[a->n++] = ev->token;
    }
}

static void fail(const char *text)
{
    fprintf(stderr, "bench_drafts: %s\n", text);
    exit(1);
}

/* Tokens per second after the first ones, of `many` answers at once with seeds of their own. */
static double measure(struct shoal_engine *en, const struct work *w, uint32_t many, float heat,
                      struct answer *out)
{
    struct shoal_error e;
    struct shoal_task *tasks[MOST];
    int32_t *tokens;
    size_t n;
    if (shoal_tokenize(en, w->prompt, strlen(w->prompt), SHOAL_TEXT_SPECIAL, &tokens, &n, &e) < 0)
        fail(e.msg);
    memset(out, 0, many * sizeof(*out));
    for (uint32_t i = 0; i < many; i++) {
        struct shoal_task_opts o = {.size = sizeof(o),
                                    .tokens = tokens,
                                    .n_tokens = (uint32_t)n,
                                    .max_tokens = w->max_tokens,
                                    .held = true,
                                    .event = on_event,
                                    .event_ctx = &out[i]};
        o.sampling.temperature = heat;
        o.sampling.seed = 7 + i;
        o.constraint_text = w->schema;
        o.constraint_bytes = w->schema ? strlen(w->schema) : 0;
        o.constraint = w->schema ? SHOAL_CONSTRAINT_SCHEMA : SHOAL_CONSTRAINT_NONE;
        if (shoal_task_submit(en, &o, &tasks[i], &e) < 0)
            fail(e.msg);
    }
    shoal_engine_wake(en);
    uint64_t first = UINT64_MAX, last = 0;
    uint32_t all = 0;
    for (uint32_t i = 0; i < many; i++) {
        if (shoal_task_wait(tasks[i]) < 0)
            fail("a task failed");
        shoal_task_free(tasks[i]);
        first = out[i].first_ns < first ? out[i].first_ns : first;
        last = out[i].end_ns > last ? out[i].end_ns : last;
        all += out[i].n - 1;
    }
    shoal_free(tokens);
    return all * 1e9 / (double)(last - first);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void compare(struct shoal_engine *const en[2], const struct work *w, uint32_t many,
                    float heat, uint32_t rounds)
{
    static struct answer got[2][MOST];
    double speed[2][MAX_ROUNDS], ratio[MAX_ROUNDS];
    const uint64_t guessed = en[1]->n_guessed, right = en[1]->n_guessed_right;
    for (uint32_t r = 0; r < rounds; r++) {
        for (int k = 0; k < 2; k++) {
            const int which = (int)(r % 2) ^ k; /* each goes first as often */
            speed[which][r] = measure(en[which], w, many, heat, got[which]);
        }
        ratio[r] = speed[1][r] / speed[0][r];
        for (uint32_t i = 0; i < many; i++)
            if (got[0][i].n != got[1][i].n ||
                memcmp(got[0][i].tokens, got[1][i].tokens, got[0][i].n * sizeof(int32_t)) != 0)
                fail("the answers differ");
    }
    for (int k = 0; k < 2; k++)
        qsort(speed[k], rounds, sizeof(double), ascending);
    qsort(ratio, rounds, sizeof(double), ascending);
    printf("%-11s %5u  %-7s %6u  %8.1f  %8.1f   %4.2f (%4.2f to %4.2f)  %5.1f %%\n", w->name, many,
           heat > 0 ? "seeded" : "greedy", got[0][0].n, speed[0][rounds / 2], speed[1][rounds / 2],
           ratio[rounds / 2], ratio[0], ratio[rounds - 1],
           en[1]->n_guessed > guessed ? 100.0 * (double)(en[1]->n_guessed_right - right) /
                                            (double)(en[1]->n_guessed - guessed)
                                      : 0.0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct shoal_engine *en[2];
    struct shoal_error e;
    const int rounds = argc > 2 ? atoi(argv[2]) : 6;
    if (argc < 2 || rounds < 1 || rounds > MAX_ROUNDS)
        fail("usage: bench_drafts MODEL [ROUNDS [ANSWER]]");
    for (int k = 0; k < 2; k++) {
        struct shoal_engine_opts o = {.size = sizeof(o),
                                      .drafts = k ? SHOAL_DRAFTS_AS_THEY_PAY : SHOAL_DRAFTS_NEVER};
        if (shoal_engine_open(&en[k], argv[1], &o, &e) < 0)
            fail(e.msg);
    }
    printf("answer      tasks  tokens  length   without      with   ratio                 right\n");
    for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
        for (uint32_t many = 1; many <= MOST; many += MOST - 1)
            for (int seeded = 0; seeded < (many == 1 ? 2 : 1); seeded++)
                if (argc < 4 || strcmp(argv[3], works[i].name) == 0)
                    compare(en, &works[i], many, seeded ? 0.7f : 0.0f, (uint32_t)rounds);
    shoal_engine_close(en[0]);
    shoal_engine_close(en[1]);
    return 0;
}

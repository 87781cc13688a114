/* model_opts.c - see model_opts.h. */
#include "cmd/local/model_opts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/stored.h"

/* Two tables of options, each with and without a default for -m. */
/* clang-format off */
#define MODEL_DEFS(included, help)                                                                 \
    {"model", 'm', OPTS_TEXT, "MODEL", (included), 0, 0, (help)},                                  \
    {"ctx", 'c', OPTS_UINT, "N", "0", 0, 16777216,                                                 \
     "context length in tokens; 0: the model's own, at most 4096"},                                \
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256,                                                  \
     "number of threads; 0: chosen for this model and machine"},                                   \
    {"kernels", 0, OPTS_TEXT, "NAME", NULL, 0, 0,                                                  \
     "use this kernel set (see 'shoal doctor'); default: the best for this CPU"},                  \
    {"kv", 0, OPTS_CHOICE, "f16|q8", "f16", 0, 0, "precision of the key-value cache"},             \
    {"chunk", 0, OPTS_UINT, "N", "0", 0, 4096, "prefill tokens per step; 0: 128"},                 \
    {"no-cache", 0, OPTS_FLAG, NULL, NULL, 0, 0, "do not cache tiled weights on disk"},            \
    {"key-file", 0, OPTS_TEXT, "FILE", NULL, 0, 0,                                                 \
     "file with the key or the passphrase of an encrypted model"},
#define SPECIALIST_DEFS(included, help)                                                            \
    {"model", 'm', OPTS_TEXT, "MODEL", (included), 0, 0, (help)},                                  \
    {"int8", 0, OPTS_FLAG, NULL, NULL, 0, 0,                                                       \
     "compute with 8-bit weights, whatever the file contains"},                                    \
    {"threads", 't', OPTS_UINT, "N", "0", 0, 256,                                                  \
     "number of threads; 0: chosen for this model and machine"},                                   \
    {"kernels", 0, OPTS_TEXT, "NAME", NULL, 0, 0,                                                  \
     "use this kernel set (see 'shoal doctor'); default: the best for this CPU"},                  \
    {"no-cache", 0, OPTS_FLAG, NULL, NULL, 0, 0, "do not cache tiled weights on disk"},            \
    {"key-file", 0, OPTS_TEXT, "FILE", NULL, 0, 0,                                                 \
     "file with the key or the passphrase of an encrypted model"},
/* clang-format on */

#define MODEL_HELP "GGUF file, Hugging Face folder, or name of an included or pulled model"
static const struct opts_def model_defs[] = {MODEL_DEFS(NULL, MODEL_HELP " (required)")};
static const struct opts_def reply_defs[] = {MODEL_DEFS("reply", MODEL_HELP)};
const struct opts_group model_opts_group = OPTS_GROUP_INIT("Model", model_defs);
const struct opts_group model_opts_group_reply = OPTS_GROUP_INIT("Model", reply_defs);

#define SPECIALIST_HELP "model file, Hugging Face folder, or name of an included or pulled model"
static const struct opts_def specialist_defs[] = {
    SPECIALIST_DEFS(NULL, SPECIALIST_HELP " (required)")};
const struct opts_group model_opts_specialist_group = OPTS_GROUP_INIT("Model", specialist_defs);

static const struct opts_def classify_defs[] = {SPECIALIST_DEFS("intent", SPECIALIST_HELP)};
const struct opts_group model_opts_classify_group = OPTS_GROUP_INIT("Model", classify_defs);
static const struct opts_def tag_defs[] = {SPECIALIST_DEFS("entities", SPECIALIST_HELP)};
const struct opts_group model_opts_tag_group = OPTS_GROUP_INIT("Model", tag_defs);
static const struct opts_def embed_defs[] = {SPECIALIST_DEFS("embed", SPECIALIST_HELP)};
const struct opts_group model_opts_embed_group = OPTS_GROUP_INIT("Model", embed_defs);
static const struct opts_def summarize_defs[] = {SPECIALIST_DEFS("summary", SPECIALIST_HELP)};
const struct opts_group model_opts_summarize_group = OPTS_GROUP_INIT("Model", summarize_defs);
static const struct opts_def score_defs[] = {SPECIALIST_DEFS("anomaly", SPECIALIST_HELP)};
const struct opts_group model_opts_score_group = OPTS_GROUP_INIT("Model", score_defs);
static const struct opts_def hear_defs[] = {SPECIALIST_DEFS("hear", SPECIALIST_HELP)};
const struct opts_group model_opts_hear_group = OPTS_GROUP_INIT("Model", hear_defs);
static const struct opts_def speak_defs[] = {SPECIALIST_DEFS("voice", SPECIALIST_HELP)};
const struct opts_group model_opts_speak_group = OPTS_GROUP_INIT("Model", speak_defs);

static const struct opts_def sampling_defs[] = {
    {"temp", 0, OPTS_REAL, "X", "0.8", 0, 100, "temperature; 0: always take the most likely token"},
    {"top-k", 0, OPTS_UINT, "N", "40", 0, 1000000000,
     "sample from the N most likely tokens; 0: all"},
    {"top-p", 0, OPTS_REAL, "X", "0.95", 0, 1,
     "sample from the most likely tokens whose probabilities add up to X"},
    {"min-p", 0, OPTS_REAL, "X", "0.05", 0, 1,
     "drop tokens less than X times as likely as the best"},
    {"repeat-penalty", 0, OPTS_REAL, "X", "1", 0, 10, "above 1: make recent tokens less likely"},
    {"repeat-last-n", 0, OPTS_UINT, "N", "64", 1, 16777216,
     "number of recent tokens that the penalty considers"},
    {"presence-penalty", 0, OPTS_REAL, "X", "0", -10, 10,
     "subtracted once from the logit of every generated token"},
    {"frequency-penalty", 0, OPTS_REAL, "X", "0", -10, 10,
     "subtracted for each time a token was generated"},
    {"logit-bias", 0, OPTS_LIST, "ID=X", NULL, 0, 0,
     "add X to a token's logit, -inf forbids it; may be repeated"},
    {"seed", 's', OPTS_UINT, "N", NULL, 0, 0, "random seed: same seed, same text; default: random"},
};
const struct opts_group model_opts_sampling_group = OPTS_GROUP_INIT("Sampling", sampling_defs);

struct tiling {
    struct term_progress bar;
    int interrupt_fd;
    bool interrupted;
};

static bool tiling_progress(void *ctx, double part)
{
    struct tiling *p = ctx;
    term_progress_show(&p->bar, part, NULL);
    if (term_interrupted(p->interrupt_fd))
        p->interrupted = true;
    return p->interrupted;
}

/* Opens the model of -m; eo has the other options. */
static int open_engine(const struct opts *o, struct shoal_engine_opts *eo,
                       const struct model_name *name, int interrupt_fd,
                       struct shoal_engine **engine)
{
    struct err e = {0};
    struct tiling tiling = {.interrupt_fd = interrupt_fd};
    eo->kernels = opts_text(o, "kernels");
    eo->n_threads = opts_u32(o, "threads");
    eo->cache_dir = opts_flag(o, "no-cache") ? "" : NULL;
    eo->key_file = opts_text(o, "key-file");
    eo->progress = tiling_progress;
    eo->progress_ctx = &tiling; /* cppcheck-suppress autoVariables */
    term_progress_init(&tiling.bar, "tiling weights");
    int rc = shoal_engine_open(engine, name->path, eo, &e);
    eo->progress_ctx = NULL;
    term_progress_end(&tiling.bar);
    if (tiling.interrupted) {
        shoal_engine_close(*engine);
        *engine = NULL;
        return CMD_INTERRUPTED;
    }
    if (rc < 0)
        return cmd_fail(o->page, "%s", e.msg);
    struct shoal_engine_info info = {.size = sizeof(info)};
    shoal_engine_info(*engine, &info);
    log_info("cmd", "model loaded path=%s arch=%s kernels=%s threads=%u ctx=%u ms=%.1f cached=%d",
             name->path, info.arch, info.kernels, info.n_threads, info.n_ctx, info.load_ms,
             info.from_cache);
    return CMD_OK;
}

/* included: the default of -m, which a file in the current folder does not replace. */
static int find_model(const struct opts *o, const char *model, bool included,
                      struct model_name *name)
{
    struct err e = {0}, none = {0};
    char path[PATH_MAX];
    *name = (struct model_name){0};
    if (!model)
        return opts_usage(o->page, "no model given: use -m MODEL");
    int rc =
        included ? model_name_included(name, model, &e) : model_name_find(name, NULL, model, &e);
    /* neither a file nor included: perhaps it was pulled */
    if (!included && (rc == SHOAL_ENOTFOUND || (rc == 0 && access(name->path, F_OK) < 0))) {
        int found = stored_path(model, path, &none);
        if (found == 0) {
            model_name_fini(name);
            name->path = mem_strdup(path);
            rc = name->path ? 0 : err_set(&e, SHOAL_ENOMEM, "out of memory");
        } else if (found == SHOAL_EINVAL) {
            rc = err_set(&e, found, "%s", none.msg);
        }
    }
    if (rc == SHOAL_ENOTFOUND)
        return cmd_fail(o->page, "%s; the store has none of that name either: shoal pull %.64s",
                        e.msg, model);
    return rc < 0 ? cmd_fail(o->page, "%s", e.msg) : CMD_OK;
}

int model_opts_open(const struct opts *o, const struct shoal_engine_opts *base, int interrupt_fd,
                    struct shoal_engine **engine)
{
    struct shoal_engine_opts eo = {.size = sizeof(eo)};
    struct model_name name;
    *engine = NULL;
    int rc = find_model(o, opts_text(o, "model"), !opts_given(o, "model"), &name);
    if (base)
        eo = *base;
    eo.n_ctx = opts_u32(o, "ctx");
    eo.chunk = opts_u32(o, "chunk");
    eo.kv_q8 = strcmp(opts_text(o, "kv"), "q8") == 0;
    if (rc == CMD_OK)
        rc = open_engine(o, &eo, &name, interrupt_fd, engine);
    model_name_fini(&name);
    return rc;
}

static int open_specialist(const struct opts *o, const char *model, bool included, int interrupt_fd,
                           struct shoal_engine **engine, struct model_name *name)
{
    struct shoal_engine_opts eo = {.size = sizeof(eo)};
    *engine = NULL;
    int rc = find_model(o, model, included, name);
    eo.int8 = opts_flag(o, "int8") || name->int8;
    return rc == CMD_OK ? open_engine(o, &eo, name, interrupt_fd, engine) : rc;
}

int model_opts_specialist_open_as(const struct opts *o, const char *model, int interrupt_fd,
                                  struct shoal_engine **engine, struct model_name *name)
{
    return open_specialist(o, model, false, interrupt_fd, engine, name);
}

int model_opts_specialist_open(const struct opts *o, int interrupt_fd, struct shoal_engine **engine,
                               struct model_name *name)
{
    return open_specialist(o, opts_text(o, "model"), !opts_given(o, "model"), interrupt_fd, engine,
                           name);
}

static int read_bias(const struct opts *o, struct sampling_opts *out)
{
    const char *const *list;
    size_t n = opts_list(o, "logit-bias", &list);
    out->bias = mem_zalloc_n(n, sizeof(*out->bias));
    if (!out->bias)
        return cmd_fail(o->page, "out of memory");
    for (size_t i = 0; i < n; i++) {
        char *end, *end2;
        errno = 0;
        long id = strtol(list[i], &end, 10);
        if (errno || end == list[i] || *end != '=' || id < 0 || id > INT32_MAX)
            return opts_usage(o->page, "--logit-bias is %s, expected ID=X", list[i]);
        double x = strtod(end + 1, &end2);
        if (end2 == end + 1 || *end2 || isnan(x))
            return opts_usage(o->page, "--logit-bias is %s, expected ID=X", list[i]);
        out->bias[i] = (struct shoal_bias){(int32_t)id, (float)x};
    }
    out->sampling.bias = out->bias;
    out->sampling.n_bias = (uint32_t)n;
    return CMD_OK;
}

int model_opts_sampling_read(const struct opts *o, struct sampling_opts *out)
{
    uint64_t seed = opts_uint(o, "seed");
    if (!opts_given(o, "seed")) {
        /* Short enough to type again to get the same text. */
        if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
            seed = clock_ns();
        seed &= 0xffffffffu;
    }
    *out = (struct sampling_opts){
        .sampling = {.temperature = (float)opts_real(o, "temp"),
                     .top_k = opts_u32(o, "top-k"),
                     .top_p = (float)opts_real(o, "top-p"),
                     .min_p = (float)opts_real(o, "min-p"),
                     .repeat_penalty = (float)opts_real(o, "repeat-penalty"),
                     .repeat_last_n = opts_u32(o, "repeat-last-n"),
                     .presence_penalty = (float)opts_real(o, "presence-penalty"),
                     .frequency_penalty = (float)opts_real(o, "frequency-penalty"),
                     .seed = seed}};
    return read_bias(o, out);
}

void model_opts_sampling_fini(struct sampling_opts *s)
{
    mem_free(s->bias);
    s->bias = NULL;
}

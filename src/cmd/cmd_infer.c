/* cmd_infer.c - shoal classify, tag, embed and summarize: one result per text. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file_read.h"
#include "base/file/lines.h"
#include "base/plural.h"
#include "cmd/cli/term.h"
#include "cmd/cmd.h"
#include "cmd/local/local_pipe.h"
#include "cmd/local/model_opts.h"
#include "image/image_read.h"
#include "wire/result_json.h"

cmd_fn cmd_classify, cmd_tag, cmd_embed, cmd_summarize;

/* ---- pages ---------------------------------------------------------------------------------- */

#define COMMON_DEFS                                                                                \
    {                                                                                              \
        "file", 'f', OPTS_TEXT, "FILE",                                                            \
        NULL,   0,   0,         "read one text per line from FILE; - means stdin"},                \
    {                                                                                              \
        "json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object per line"                   \
    }

#define IMAGE_DEF                                                                                  \
    {                                                                                              \
        "image", 'i', OPTS_LIST, "FILE", NULL, 0, 0,                                               \
            "an image (JPEG, PNG, WebP) instead of texts, for a model that sees; may be given "    \
            "several times"                                                                        \
    }

static const struct opts_def classify_defs[] = {
    {"labels", 'l', OPTS_TEXT, "SET", NULL, 0, 0, "label set; default: the model's default"},
    {"top", 0, OPTS_UINT, "N", "3", 0, 100000, "number of labels to show; 0: all"},
    IMAGE_DEF,
    COMMON_DEFS,
};
static const struct opts_def tag_defs[] = {
    {"labels", 'l', OPTS_TEXT, "SET", NULL, 0, 0, "label set; default: the model's default"},
    COMMON_DEFS,
};
static const struct opts_def embed_defs[] = {
    {"dimensions", 'd', OPTS_UINT, "N", "0", 0, 65536,
     "keep only the first N, scaled to length 1; 0: all"},
    {"prompt", 0, OPTS_TEXT, "NAME", NULL, 0, 0,
     "prompt of the model; \"\": none; default: the model's default"},
    IMAGE_DEF,
    COMMON_DEFS,
};
static const struct opts_def summarize_defs[] = {
    {"sentences", 'n', OPTS_UINT, "N", "0", 0, 1000, "at most N sentences; 0: the model's default"},
    {"title", 0, OPTS_TEXT, "TEXT", NULL, 0, 0, "extractive models: the title of the text"},
    {"max-tokens", 0, OPTS_UINT, "N", "0", 0, 65536,
     "generative models: at most N tokens; 0: the model's default"},
    {"beams", 0, OPTS_UINT, "N", "0", 0, 64,
     "generative models: number of beams; 0: the model's default"},
    {"temp", 0, OPTS_REAL, "T", "0", 0, 100, "generative models: temperature; 0: no sampling"},
    {"seed", 0, OPTS_UINT, "N", "0", 0, 0, "random seed: same seed, same text"},
    {"file", 'f', OPTS_TEXT, "FILE", NULL, 0, 0, "read the text from FILE; - means stdin"},
    {"json", 0, OPTS_FLAG, NULL, NULL, 0, 0, "print one JSON object"},
};

#define INPUT_TEXT                                                                                 \
    "Each argument is a text; without arguments, each line of -f FILE or of stdin is one.\n"       \
    "Results are in the order of the texts; on a pipe each is printed as soon as its line "        \
    "arrives."

static const struct {
    enum shoal_kind kind;
    struct opts_page page;
} commands[] = {
    {SHOAL_KIND_CLASSIFY,
     {.command = "classify",
      .arguments = "[TEXT...]",
      .max_args = UINT32_MAX,
      .summary = "Classifies texts: prints labels and their probabilities.",
      .details = INPUT_TEXT,
      .groups = {OPTS_GROUP("Options", classify_defs), &model_opts_classify_group},
      .examples = "  shoal classify \"turn off the kitchen lights\"\n"
                  "  shoal classify --labels clinc150 --top 5 \"what is my balance\"\n"
                  "  shoal classify -m ./my-bert -f texts.txt --json > labels.jsonl\n"
                  "  shoal classify -m ./vit-base-patch16-224 --image cat.jpg\n"}},
    {SHOAL_KIND_TAG,
     {.command = "tag",
      .arguments = "[TEXT...]",
      .max_args = UINT32_MAX,
      .summary = "Finds entities, slots or personal data in a text.",
      .details = INPUT_TEXT "\nIn JSON, start and end are character positions.",
      .groups = {OPTS_GROUP("Options", tag_defs), &model_opts_tag_group},
      .examples = "  shoal tag \"set the heating in the bedroom to 19 degrees\"\n"
                  "  shoal tag --json -f commands.txt\n"}},
    {SHOAL_KIND_EMBED,
     {.command = "embed",
      .arguments = "[TEXT...]",
      .max_args = UINT32_MAX,
      .summary = "Computes embeddings: similar texts have similar vectors.",
      .details =
          INPUT_TEXT "\nVectors have length 1: their dot product is the similarity of two texts.",
      .groups = {OPTS_GROUP("Options", embed_defs), &model_opts_embed_group},
      .examples = "  shoal embed \"the pump is too hot\"\n"
                  "  shoal embed -m ./all-MiniLM-L6-v2 --int8 -f sentences.txt --json\n"}},
    {SHOAL_KIND_SUMMARIZE,
     {.command = "summarize",
      .arguments = "[TEXT]",
      .max_args = 1,
      .summary = "Summarizes a long text.",
      .details = "The text is the argument, the contents of -f FILE, or stdin.",
      .groups = {OPTS_GROUP("Options", summarize_defs), &model_opts_summarize_group},
      .examples = "  shoal summarize -f manual.txt\n"
                  "  shoal summarize --sentences 2 --json < report.txt\n"}},
};

/* ---- output --------------------------------------------------------------------------------- */

struct work {
    const struct opts *o;
    struct local local;
    struct local_pipe pipe;
    struct request_infer task; /* options of every text */
    struct buf out;
    struct term_progress bar;
    bool images;                             /* rows are names of files */
    uint64_t n_taken, bytes_read, bytes_all; /* bytes_all 0: unknown */
    int interrupt_fd;
    int exit_code;
};

static void print_text(struct work *w, const char *text, const struct shoal_result *r)
{
    struct buf *b = &w->out;
    uint32_t top = w->task.kind == SHOAL_KIND_CLASSIFY ? opts_u32(w->o, "top") : 0;
    switch (r->kind) {
    case SHOAL_KIND_CLASSIFY:
        buf_printf(b, "%s %.3f", r->label, (double)r->confidence);
        for (uint32_t i = 0; i < r->n_labels && (top == 0 || i < top); i++)
            if (i > 0 || strcmp(r->labels[i].name, r->label) != 0)
                buf_printf(b, "  %s %.3f", r->labels[i].name, (double)r->labels[i].score);
        break;
    case SHOAL_KIND_TAG:
        for (uint32_t i = 0; i < r->n_spans; i++)
            buf_printf(b, "%s%s=%.*s", i ? "  " : "", r->spans[i].label,
                       (int)(r->spans[i].end - r->spans[i].start), text + r->spans[i].start);
        break;
    case SHOAL_KIND_EMBED:
        for (uint32_t i = 0; i < r->n_dims; i++)
            buf_printf(b, "%s%.6g", i ? " " : "", (double)r->vector[i]);
        break;
    case SHOAL_KIND_SUMMARIZE:
        buf_put(b, r->text, r->text_bytes);
        break;
    default:
        break;
    }
    buf_putc(b, '\n');
}

static void print_json(struct work *w, const char *text, const struct shoal_result *r)
{
    struct json_out j = json_out_make(&w->out);
    json_out_object(&j);
    if (r->kind != SHOAL_KIND_SUMMARIZE)
        json_out_member_str(&j, w->images ? "image" : "text", text);
    json_out_member_str(&j, "model", opts_text(w->o, "model"));
    result_json_answer(&j, r, text, r->kind == SHOAL_KIND_CLASSIFY ? opts_u32(w->o, "top") : 0);
    result_json_cost(&j, r);
    json_out_object_end(&j);
    buf_putc(&w->out, '\n');
}

/* row: the text, or the name of the image. */
static int take(void *ctx, void *row, const struct shoal_result *r, struct err *e)
{
    struct work *w = ctx;
    if (opts_flag(w->o, "json"))
        print_json(w, row, r);
    else
        print_text(w, row, r);
    w->n_taken++;
    if (w->out.rc < 0)
        return err_set(e, w->out.rc, "result");
    /* A pipe gets each result at once; a file gets blocks. */
    w->exit_code = cmd_print(w->o->page, &w->out);
    buf_clear(&w->out);
    return w->exit_code == CMD_OK ? 0 : SHOAL_EIO;
}

/* ---- input ---------------------------------------------------------------------------------- */

/* A request with one input, which the caller fills; NULL: out of memory. */
static struct request *begin(struct work *w, struct request_input **input, struct err *e)
{
    struct request *r = flow_take_request(&w->local.owner);
    *input = r ? arena_zalloc(&r->arena, sizeof(**input)) : NULL;
    if (!*input) {
        if (r)
            flow_give_request(&w->local.owner, r);
        err_set(e, SHOAL_ENOMEM, "out of memory for a request");
        return NULL;
    }
    r->kind = REQUEST_INFER;
    r->model = opts_text(w->o, "model");
    r->received_ns = clock_ns();
    r->infer = w->task;
    r->infer.inputs = *input;
    r->infer.n_inputs = 1;
    return r;
}

static int put(struct work *w, const char *text, size_t n, struct err *e)
{
    struct request_input *input;
    struct request *r = begin(w, &input, e);
    char *copy = r ? arena_bytes(&r->arena, n + 1) : NULL;
    if (!copy) {
        if (r)
            flow_give_request(&w->local.owner, r);
        return err_set(e, SHOAL_ENOMEM, "out of memory for a text of %zu bytes", n);
    }
    memcpy(copy, text, n);
    copy[n] = '\0';
    *input = (struct request_input){.text = copy, .text_bytes = n};
    r->input_bytes = n;
    return local_pipe_put(&w->pipe, r, copy, e);
}

static int put_image(struct work *w, const char *path, struct err *e)
{
    struct request_input *input;
    struct buf file;
    buf_init(&file, IMAGE_MAX_BYTES);
    int rc = file_read(path, &file, e);
    struct request *r = rc == 0 ? begin(w, &input, e) : NULL;
    char *copy = r ? arena_bytes(&r->arena, file.len + 1) : NULL;
    if (copy) {
        memcpy(copy, buf_str(&file), file.len);
        *input = (struct request_input){.image = copy, .image_bytes = file.len};
    } else if (rc == 0) {
        if (r)
            flow_give_request(&w->local.owner, r);
        rc = err_set(e, SHOAL_ENOMEM, "out of memory for an image of %zu bytes", file.len);
    }
    buf_fini(&file);
    if (rc < 0)
        return rc;
    rc = local_pipe_put(&w->pipe, r, (void *)(uintptr_t)path, e);
    if (rc == 0) /* one at a time, so that an error is about this file */
        rc = local_pipe_drain(&w->pipe, e);
    return rc < 0 && rc != SHOAL_ECANCELLED ? err_wrap(e, "%s", path) : rc;
}

static void show_progress(struct work *w)
{
    char note[48];
    snprintf(note, sizeof(note), "%llu text%s", (unsigned long long)w->n_taken, plural(w->n_taken));
    if (!isatty(STDOUT_FILENO)) /* results on a terminal show the progress */
        term_progress_show(&w->bar,
                           w->bytes_all ? (double)w->bytes_read / (double)w->bytes_all : 0.0, note);
}

/* Submits every line that is not empty. */
static int put_lines(struct work *w, int fd, struct err *e)
{
    struct lines lines;
    struct stat st;
    char *line;
    size_t n;
    int rc = 0, got;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        w->bytes_all = (uint64_t)st.st_size;
    lines_init(&lines, fd);
    lines.name = opts_text(w->o, "file");
    term_progress_init(&w->bar, w->o->page->command);
    while (rc == 0 && (got = lines_next(&lines, w->interrupt_fd, &line, &n, e)) != LINES_END) {
        if (got < 0)
            rc = got;
        else if (got == LINES_INTERRUPT || term_interrupted(w->interrupt_fd))
            rc = SHOAL_ECANCELLED;
        else if (n > 0)
            rc = put(w, line, n, e);
        w->bytes_read += n + 1;
        show_progress(w);
        if (rc == 0 && !lines_ready(&lines)) /* no more input for now: print the answers */
            rc = local_pipe_drain(&w->pipe, e);
    }
    if (rc == 0)
        rc = local_pipe_drain(&w->pipe, e);
    term_progress_end(&w->bar);
    lines_fini(&lines);
    return rc;
}

static int put_whole(struct work *w, struct err *e)
{
    struct buf text;
    const char *arg = w->o->n_args ? w->o->args[0] : NULL;
    w->exit_code = cmd_read_text(w->o, arg, opts_text(w->o, "file"), &text);
    int rc = w->exit_code == CMD_OK ? put(w, buf_str(&text), text.len, e) : SHOAL_EIO;
    buf_fini(&text);
    return rc < 0 ? rc : local_pipe_drain(&w->pipe, e);
}

static bool has_images(enum shoal_kind kind)
{
    return kind == SHOAL_KIND_CLASSIFY || kind == SHOAL_KIND_EMBED;
}

static int put_all(struct work *w, struct err *e)
{
    const char *file = opts_text(w->o, "file");
    int rc = 0;
    if (w->task.kind == SHOAL_KIND_SUMMARIZE)
        return put_whole(w, e);
    const char *const *images = NULL;
    const size_t n_images = has_images(w->task.kind) ? opts_list(w->o, "image", &images) : 0;
    if (n_images > 0 && (w->o->n_args > 0 || file)) {
        w->exit_code = opts_usage(w->o->page, "give either images or texts, not both");
        return SHOAL_EINVAL;
    }
    w->images = n_images > 0;
    for (size_t i = 0; rc == 0 && i < n_images; i++)
        rc = put_image(w, images[i], e);
    if (n_images > 0)
        return rc;
    if (w->o->n_args > 0 && file) {
        w->exit_code = opts_usage(w->o->page, "give either texts or a file, not both");
        return SHOAL_EINVAL;
    }
    if (w->o->n_args > 0) {
        for (size_t i = 0; rc == 0 && i < w->o->n_args; i++)
            rc = put(w, w->o->args[i], strlen(w->o->args[i]), e);
        return rc < 0 ? rc : local_pipe_drain(&w->pipe, e);
    }
    if (!file && isatty(STDIN_FILENO)) {
        w->exit_code =
            opts_usage(w->o->page, "no input: pass a text, use -f FILE, or pipe lines to stdin");
        return SHOAL_EINVAL;
    }
    int fd = file && strcmp(file, "-") != 0 ? open(file, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (fd < 0)
        return err_set(e, SHOAL_EIO, "cannot open %s: %m", file);
    rc = put_lines(w, fd, e);
    if (fd != STDIN_FILENO)
        close(fd);
    return rc;
}

/* ---- the commands --------------------------------------------------------------------------- */

static void read_task(struct work *w, enum shoal_kind kind)
{
    const struct opts *o = w->o;
    w->task.kind = kind;
    if (kind == SHOAL_KIND_CLASSIFY || kind == SHOAL_KIND_TAG)
        w->task.labels = opts_text(o, "labels");
    if (kind == SHOAL_KIND_EMBED) {
        w->task.dimensions = opts_u32(o, "dimensions");
        w->task.prompt = opts_text(o, "prompt");
    }
    if (kind == SHOAL_KIND_SUMMARIZE) {
        w->task.title = opts_text(o, "title");
        w->task.max_sentences = opts_u32(o, "sentences");
        w->task.max_tokens = opts_u32(o, "max-tokens");
        w->task.beams = opts_u32(o, "beams");
        w->task.temperature = (float)opts_real(o, "temp");
        w->task.seed = opts_uint(o, "seed");
    }
}

static int run(const struct opts *o, enum shoal_kind kind)
{
    struct work w = {.o = o, .exit_code = CMD_OK, .interrupt_fd = term_catch_interrupt()};
    struct shoal_engine *engine;
    struct model_name name;
    struct err e = {0};
    int rc = model_opts_specialist_open(o, w.interrupt_fd, &engine, &name);
    if (rc == CMD_OK && (local_open(&w.local, &e) < 0 ||
                         local_lend(&w.local, opts_text(o, "model"), name.labels, engine, &e) < 0))
        rc = cmd_fail(o->page, "%s", e.msg);
    if (rc == CMD_OK) {
        read_task(&w, kind);
        buf_init(&w.out, (size_t)1 << 28);
        local_pipe_init(&w.pipe, &w.local, w.interrupt_fd, take, &w);
        int failed = put_all(&w, &e);
        local_pipe_fini(&w.pipe);
        buf_fini(&w.out);
        rc = w.exit_code != CMD_OK        ? w.exit_code
             : failed == SHOAL_ECANCELLED ? CMD_INTERRUPTED
             : failed < 0                 ? cmd_fail(o->page, "%s", e.msg)
                                          : CMD_OK;
    }
    local_close(&w.local);
    shoal_engine_close(engine);
    model_name_fini(&name);
    term_release_interrupt(w.interrupt_fd);
    return rc;
}

static int command(enum shoal_kind kind, int argc, const char *const *argv)
{
    struct opts o;
    int rc;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (commands[i].kind == kind) {
            if (!cmd_begin(&o, &commands[i].page, argc, argv, &rc))
                return rc;
            rc = run(&o, kind);
            opts_fini(&o);
            return rc;
        }
    return CMD_USAGE;
}

int cmd_classify(int argc, const char *const *argv)
{
    return command(SHOAL_KIND_CLASSIFY, argc, argv);
}

int cmd_tag(int argc, const char *const *argv)
{
    return command(SHOAL_KIND_TAG, argc, argv);
}

int cmd_embed(int argc, const char *const *argv)
{
    return command(SHOAL_KIND_EMBED, argc, argv);
}

int cmd_summarize(int argc, const char *const *argv)
{
    return command(SHOAL_KIND_SUMMARIZE, argc, argv);
}

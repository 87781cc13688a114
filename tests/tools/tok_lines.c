/* tok_lines.c - tokenizes texts with the tokenizer of a Hugging Face folder, for the conformance
 * tests and by hand.
 *
 * usage: tok_lines [--time N] FOLDER < texts
 *   Takes tokenizer.json (or vocab.txt, spiece.model, vocab.json with merges.txt),
 *   tokenizer_config.json, config.json and generation_config.json of the folder, as far as they are
 *   there.  Each text is "FLAGS MAX NA NB\n" and then NA and NB bytes; NB is -1 for one text only.
 *   Each answer is one line: "id:type:input:start:end ..." and, after a "|", the decoded text in
 *   hex.
 *   --time N: encodes each text N times and says on stderr how long one took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/tokenizer/tokenizer.h"
#include "support/gguf_build.h"

static int die(const char *what, const char *why)
{
    fprintf(stderr, "tok_lines: %s: %s\n", what, why);
    exit(1);
}

/* The file under `key`, as a string or as bytes, if the folder has it. */
static void put_file(struct buf *b, const char *folder, const char *name, const char *key,
                     bool text)
{
    char path[4096], part[65536];
    struct buf all;
    size_t n;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return;
    buf_init(&all, (size_t)1 << 28);
    while ((n = fread(part, 1, sizeof(part), f)) > 0)
        buf_put(&all, part, n);
    fclose(f);
    if (text) {
        gb_key(b, key, MODEL_FILE_STRING);
        gb_u64(b, all.len);
    } else {
        gb_kv_array(b, key, MODEL_FILE_U8, all.len);
    }
    buf_put(b, all.data, all.len);
    buf_fini(&all);
}

static struct tokenizer *open_folder(const char *folder)
{
    struct tokenizer *t = NULL;
    struct model_file *g = NULL;
    struct err e = {0};
    struct buf b;
    gb_begin(&b);
    b.max = (size_t)1 << 30;
    put_file(&b, folder, "tokenizer.json", "tokenizer.huggingface.json", true);
    put_file(&b, folder, "tokenizer_config.json", "tokenizer.huggingface.config", true);
    put_file(&b, folder, "config.json", "huggingface.config", true);
    put_file(&b, folder, "generation_config.json", "huggingface.generation_config", true);
    put_file(&b, folder, "vocab.txt", "tokenizer.huggingface.vocab_txt", true);
    put_file(&b, folder, "spiece.model", "tokenizer.huggingface.spiece", false);
    put_file(&b, folder, "vocab.json", "tokenizer.huggingface.vocab_json", true);
    put_file(&b, folder, "merges.txt", "tokenizer.huggingface.merges_txt", true);
    if (b.rc < 0 || gguf_parse(&g, b.data, b.len, &e) < 0 || tokenizer_create(&t, g, &e) < 0)
        die(folder, b.rc < 0 ? "cannot be read" : e.msg);
    model_file_close(g);
    buf_fini(&b);
    return t;
}

static void show(const struct tokenizer *t, const struct tok_encoding *x)
{
    struct buf text;
    for (size_t i = 0; i < x->n; i++)
        printf("%s%d:%u:%u:%u:%u", i ? " " : "", x->ids[i], x->types[i], x->inputs[i], x->start[i],
               x->end[i]);
    buf_init(&text, (size_t)1 << 28);
    tokenizer_decode(t, &text, x->ids, x->n, 0);
    putchar('|');
    for (size_t i = 0; i < text.len; i++)
        printf("%02x", (unsigned)(uint8_t)text.data[i]);
    putchar('\n');
    buf_fini(&text);
}

int main(int argc, char **argv)
{
    unsigned times = 1;
    if (argc == 4 && strcmp(argv[1], "--time") == 0) {
        times = (unsigned)strtoul(argv[2], NULL, 10);
        argv += 2;
        argc -= 2;
    }
    if (argc != 2)
        return die("usage", "tok_lines [--time N] FOLDER");
    struct tokenizer *t = open_folder(argv[1]);
    struct tok_encoding x;
    struct err e = {0};
    struct timespec a, b;
    unsigned flags;
    size_t max, na, n_texts = 0;
    long nb;
    char head[128];
    tokenizer_encoding_init(&x);
    clock_gettime(CLOCK_MONOTONIC, &a);
    while (fgets(head, sizeof(head), stdin)) {
        if (sscanf(head, "%u %zu %zu %ld", &flags, &max, &na, &nb) != 4)
            die("input", "not a header");
        char *text = malloc(na + (nb > 0 ? (size_t)nb : 0) + 1);
        if (!text ||
            fread(text, 1, na + (nb > 0 ? (size_t)nb : 0), stdin) != na + (nb > 0 ? (size_t)nb : 0))
            die("input", "too short");
        for (unsigned i = 0; i < times; i++)
            if (tokenizer_encode_pair(t, &x, text, na, nb >= 0 ? text + na : NULL,
                                      nb > 0 ? (size_t)nb : 0, max, flags, &e) < 0)
                die("text", e.msg);
        show(t, &x);
        n_texts++;
        free(text);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    if (times > 1)
        fprintf(stderr, "%.3f us a text\n",
                ((double)(b.tv_sec - a.tv_sec) * 1e6 + (double)(b.tv_nsec - a.tv_nsec) / 1e3) /
                    (double)(n_texts * times));
    tokenizer_encoding_fini(&x);
    tokenizer_destroy(t);
    return 0;
}

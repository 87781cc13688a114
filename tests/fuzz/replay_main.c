/* replay_main.c - runs a fuzz target over every file of its corpus, and over changed copies of it,
 * without libFuzzer.  It fails on a crash, a sanitizer report, an empty corpus, or when the target
 * makes something else of an input than outcomes/NAME.txt says (support/fuzz_note.h).
 *
 *     NAME CORPUS OUTCOMES
 *
 * SHOAL_GOLDEN=1 writes OUTCOMES; SHOAL_FUZZ_LIST=1 prints what was made of every input, to compare
 * two builds.
 *
 * The changes are the same in every run: bytes and words replaced, removed, repeated, inserted, cut
 * off, and ends of other files. */
#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_note.h"

#define N_CHANGED 128u     /* copies of each file */
#define MAX_SHOWN 200u     /* bytes of an outcome that are written in full */
#define MAX_CHANGED 65536u /* a longer file is not changed: that would take too long */
#define MAX_FILES 256u
#define HASH_BEGIN 0xcbf29ce484222325u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    uint8_t *p;
    size_t n, cap;
};

struct input {
    char *name;
    struct bytes data;
};

static struct bytes notes, outcomes;
static struct input inputs[MAX_FILES];
static uint32_t n_inputs;

static void add(struct bytes *b, const void *p, size_t n)
{
    if (b->n + n + 1 > b->cap) {
        b->cap = 2 * (b->n + n + 1);
        b->p = realloc(b->p, b->cap);
        if (!b->p)
            abort();
    }
    if (n > 0)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = '\0';
}

void fuzz_note_bytes(const void *p, size_t n)
{
    add(&notes, p, n);
}

void fuzz_note(const char *format, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    add(&notes, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static uint64_t hash_of(uint64_t h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)p)[i]) * 0x100000001b3u;
    return h;
}

/* ---- inputs ---- */

static int read_file(struct bytes *b, const char *path)
{
    char block[65536];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    for (size_t n; (n = fread(block, 1, sizeof(block), f)) > 0;)
        add(b, block, n);
    fclose(f);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct input *)a)->name, ((const struct input *)b)->name);
}

static int read_corpus(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d) {
        perror(folder);
        return -1;
    }
    for (struct dirent *e; (e = readdir(d)) && n_inputs < MAX_FILES;) {
        char path[4096];
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        struct input *x = &inputs[n_inputs++];
        x->name = strdup(e->d_name);
        if (!x->name || read_file(&x->data, path) < 0)
            return -1;
    }
    closedir(d);
    qsort(inputs, n_inputs, sizeof(inputs[0]), by_name);
    return 0;
}

/* ---- changes ---- */

static uint64_t drawn;

static size_t draw(size_t below)
{
    drawn += 0x9e3779b97f4a7c15u;
    uint64_t x = drawn;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return below ? (size_t)((x ^ (x >> 31)) % below) : 0;
}

static void replace(struct bytes *b, size_t at, size_t n, const void *p, size_t n_new)
{
    struct bytes out = {0};
    add(&out, b->p, at);
    add(&out, p, n_new);
    add(&out, b->p + at + n, b->n - at - n);
    free(b->p);
    *b = out;
}

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* The word, or the single byte, around a place. */
static size_t word_at(const struct bytes *b, size_t *at)
{
    size_t end = *at;
    if (b->n == 0 || *at >= b->n)
        return 0;
    if (!is_word(b->p[end]))
        return 1;
    while (*at > 0 && is_word(b->p[*at - 1]))
        (*at)--;
    while (end < b->n && is_word(b->p[end]))
        end++;
    return end - *at;
}

/* A word of this file or another one in place of a word: what is a language stays one. */
static void change_word(struct bytes *b, const struct bytes *other)
{
    size_t at = draw(b->n + 1), from = draw(other->n + 1);
    const size_t n = word_at(b, &at), n_new = word_at(other, &from);
    replace(b, at, n, other->p + from, n_new);
}

static void change(struct bytes *b)
{
    static const char marks[] = "{}[]()<>\"'`|%-+*.,:;=\\/_ #!?&^$~0123456789aefnrstuAZ\n\t\0\x01"
                                "\x7f\x80\xc3\xff";
    size_t at = draw(b->n + 1), left = b->n - at, n = left ? 1 + draw(left < 8 ? left : 8) : 0;
    uint8_t byte = (uint8_t)marks[draw(sizeof(marks) - 1)];
    const struct bytes *other = &inputs[draw(n_inputs)].data;
    size_t cut = draw(other->n + 1);
    uint8_t copy[8];
    memcpy(copy, b->p + at, n);
    switch (draw(14)) {
    case 9:
    case 10:
    case 11:
    case 12:
        change_word(b, other);
        break;
    case 13:
        change_word(b, &(struct bytes){b->p, b->n, b->cap});
        break;
    case 0:
        replace(b, at, n, NULL, 0);
        break;
    case 1:
        replace(b, at, 0, copy, n); /* twice */
        break;
    case 2:
        replace(b, draw(b->n + 1), 0, copy, n); /* again, elsewhere */
        break;
    case 3:
        replace(b, at, 0, &byte, 1);
        break;
    case 4:
        replace(b, at, left, NULL, 0);
        break;
    case 5:
        replace(b, at, left, other->p + cut, other->n - cut);
        break;
    case 6:
        if (left > 0)
            b->p[at] = (uint8_t)(b->p[at] + (draw(2) ? 1 : 255)); /* a number is one more or less */
        break;
    case 7:
        if (left > 0)
            b->p[at] ^= (uint8_t)(1u << draw(8));
        break;
    default:
        if (left > 0)
            b->p[at] = byte;
    }
}

/* ---- outcomes ---- */

static void run(const uint8_t *p, size_t n)
{
    uint8_t *data = malloc(n > 0 ? n : 1); /* exact size, so that ASan sees over-reads */
    if (!data)
        abort();
    if (n > 0)
        memcpy(data, p, n);
    notes.n = 0;
    LLVMFuzzerTestOneInput(data, n);
    free(data);
}

/* As a line: texts in full, anything else as its length and hash. */
static void put_notes(void)
{
    char hash[64];
    bool text = notes.n <= MAX_SHOWN;
    for (size_t i = 0; i < notes.n && text; i++)
        text = notes.p[i] >= ' ' && notes.p[i] < 0x7f;
    if (text) {
        add(&outcomes, notes.p, notes.n);
    } else {
        snprintf(hash, sizeof(hash), "%zu bytes, %016llx", notes.n,
                 (unsigned long long)hash_of(HASH_BEGIN, notes.p, notes.n));
        add(&outcomes, hash, strlen(hash));
    }
    add(&outcomes, "\n", 1);
}

static bool run_input(const struct input *x, bool list)
{
    char line[128];
    bool noted = false;
    uint64_t all = HASH_BEGIN;
    run(x->data.p, x->data.n);
    noted = notes.n > 0;
    snprintf(line, sizeof(line), "%.80s: ", x->name);
    add(&outcomes, line, strlen(line));
    put_notes();
    for (uint32_t i = 0; i < N_CHANGED && x->data.n <= MAX_CHANGED; i++) {
        struct bytes b = {0};
        add(&b, x->data.p, x->data.n);
        drawn = hash_of(HASH_BEGIN + i, x->name, strlen(x->name));
        for (size_t n = 1 + draw(3); n > 0; n--)
            change(&b);
        run(b.p, b.n);
        noted |= notes.n > 0;
        all = hash_of(all, notes.p, notes.n);
        all = hash_of(all, "", 1);
        if (list)
            printf("%s %u: %.*s\n", x->name, i, (int)notes.n, notes.n ? (char *)notes.p : "");
        free(b.p);
    }
    snprintf(line, sizeof(line), "  %u changed copies: %016llx\n", N_CHANGED,
             (unsigned long long)all);
    add(&outcomes, line, strlen(line));
    return noted;
}

/* Prints the first line that differs. */
static int compare(const char *path)
{
    struct bytes want = {0};
    if (read_file(&want, path) < 0)
        return 1;
    const char *a = (char *)want.p, *b = (char *)outcomes.p, *head = "";
    size_t n_head = 0;
    int rc = want.n != outcomes.n || memcmp(a, b, want.n) != 0;
    while (rc && *a && *b) {
        size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || memcmp(a, b, n) != 0) {
            fprintf(stderr,
                    "%.*s\n  was %.*s\n  is  %.*s\nIf that is right, SHOAL_GOLDEN=1 writes %s.  "
                    "SHOAL_FUZZ_LIST=1 prints what is made of every input.\n",
                    (int)n_head, head, (int)n, a, (int)m, b, path);
            break;
        }
        head = a;
        n_head = n;
        a += n + (a[n] != '\0');
        b += m + (b[m] != '\0');
    }
    free(want.p);
    return rc;
}

static int write_file(const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(outcomes.p, 1, outcomes.n, f) != outcomes.n || fclose(f) != 0) {
        perror(path);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    bool noted = false;
    if (argc != 3 || read_corpus(argv[1]) < 0)
        return 1;
    for (uint32_t i = 0; i < n_inputs; i++)
        noted |= run_input(&inputs[i], getenv("SHOAL_FUZZ_LIST") != NULL);
    printf("%u corpus files and %u changed copies of each\n", n_inputs, N_CHANGED);
    int rc = n_inputs == 0;
    if (noted && getenv("SHOAL_GOLDEN"))
        rc |= write_file(argv[2]);
    else if (noted)
        rc |= compare(argv[2]);
    for (uint32_t i = 0; i < n_inputs; i++) {
        free(inputs[i].name);
        free(inputs[i].data.p);
    }
    free(notes.p);
    free(outcomes.p);
    return rc;
}

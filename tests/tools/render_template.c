/* render_template.c - renders chat templates for tests, one or many.
 *
 *   render_template TEMPLATE_FILE CONTEXT_FILE   writes the prompt to stdout
 *   render_template --batch UNIX_S <jobs         strftime_now() shows UNIX_S, in UTC
 *
 * A job is "TEMPLATE_BYTES CONTEXT_BYTES\n" and the two texts; TEMPLATE_BYTES 0 takes the template
 * of the job before again.  The answer is "ok BYTES\n" or "error BYTES\n" and the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "text/chat_template.h"

static void die(const char *what)
{
    fprintf(stderr, "render_template: %s\n", what);
    exit(2);
}

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path);
    size_t cap = 1 << 16;
    char *p = malloc(cap);
    *n = 0;
    while (p) {
        size_t got = fread(p + *n, 1, cap - *n, f);
        *n += got;
        if (*n < cap)
            break;
        p = realloc(p, cap *= 2);
    }
    fclose(f);
    if (!p)
        die("out of memory");
    return p;
}

static char *read_bytes(size_t n)
{
    char *p = malloc(n + 1);
    if (!p || fread(p, 1, n, stdin) != n)
        die("a job is cut short");
    p[n] = '\0';
    return p;
}

static int batch(long long unix_s)
{
    struct chat_template *t = NULL;
    struct chat_template_opts o = {.fixed_time = true, .unix_s = unix_s};
    struct err parse_error = {0};
    size_t n_template, n_context;
    int parsed = SHOAL_EINVAL;
    while (scanf("%zu %zu", &n_template, &n_context) == 2 && getchar() == '\n') {
        char *source = read_bytes(n_template), *context = read_bytes(n_context);
        struct err e = {0};
        struct buf out;
        buf_init(&out, 64u << 20);
        if (n_template) {
            chat_template_destroy(t);
            parsed = chat_template_parse(&t, source, n_template, &parse_error);
        }
        e = parse_error;
        int rc = parsed;
        if (rc == 0)
            rc = chat_template_render_opts(t, &out, context, n_context, &o, &e);
        if (rc == 0) {
            printf("ok %zu\n", out.len);
            fwrite(buf_str(&out), 1, out.len, stdout);
        } else {
            printf("error %zu\n%s", strlen(e.msg), e.msg);
        }
        buf_fini(&out);
        free(source);
        free(context);
    }
    chat_template_destroy(t);
    return feof(stdin) ? 0 : 2;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--batch") == 0)
        return batch(atoll(argv[2]));
    if (argc != 3)
        die("usage: render_template TEMPLATE_FILE CONTEXT_FILE | --batch UNIX_S");
    size_t n_source, n_context;
    char *source = read_file(argv[1], &n_source), *context = read_file(argv[2], &n_context);
    struct chat_template *t = NULL;
    struct err e = {0};
    struct buf out;
    buf_init(&out, 64u << 20);
    int rc = chat_template_parse(&t, source, n_source, &e);
    if (rc == 0)
        rc = chat_template_render(t, &out, context, n_context, &e);
    if (rc == 0)
        fwrite(buf_str(&out), 1, out.len, stdout);
    else
        fprintf(stderr, "render_template: %s\n", e.msg);
    chat_template_destroy(t);
    buf_fini(&out);
    free(source);
    free(context);
    return rc == 0 ? 0 : 1;
}

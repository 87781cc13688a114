/* ref_file.h - reads the reference containers of tests/data/refs (format: README.md there). */
#ifndef SHOAL_TESTS_REF_FILE_H
#define SHOAL_TESTS_REF_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ref_array {
    char name[17];
    uint32_t type, rows, cols; /* type: 0 f32, 1 u32, 2 u16, 3 u8 */
    const uint8_t *data;
};

struct ref_file {
    uint8_t *bytes;
    uint32_t n;
    struct ref_array arrays[64];
};

/* 0, or -1 when the file is missing or broken. */
static inline int ref_open(struct ref_file *f, const char *path)
{
    static const uint32_t sizes[] = {4, 4, 2, 1};
    memset(f, 0, sizeof(*f));
    FILE *in = fopen(path, "rb");
    if (!in)
        return -1;
    fseek(in, 0, SEEK_END);
    size_t n = (size_t)ftell(in), at = 12;
    rewind(in);
    f->bytes = malloc(n);
    size_t got = f->bytes ? fread(f->bytes, 1, n, in) : 0;
    fclose(in);
    if (got != n || n < 12 || memcmp(f->bytes, "SHLREF1\n", 8) != 0)
        return -1;
    memcpy(&f->n, f->bytes + 8, 4);
    if (f->n > 64)
        return -1;
    for (uint32_t i = 0; i < f->n; i++) {
        struct ref_array *a = &f->arrays[i];
        if (at + 28 > n)
            return -1;
        memcpy(a->name, f->bytes + at, 16);
        memcpy(&a->type, f->bytes + at + 16, 12);
        a->data = f->bytes + at + 28;
        size_t bytes = (size_t)a->rows * a->cols * (a->type < 4 ? sizes[a->type] : 0);
        at += 28 + (bytes + 3) / 4 * 4;
        if (at > n)
            return -1;
    }
    return 0;
}

static inline void ref_close(struct ref_file *f)
{
    free(f->bytes);
}

static inline const struct ref_array *ref_find(const struct ref_file *f, const char *name)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (strcmp(f->arrays[i].name, name) == 0)
            return &f->arrays[i];
    return NULL;
}

static inline int32_t ref_int(const struct ref_array *a, size_t i)
{
    uint32_t v = 0;
    memcpy(&v,
           a->data + i * (a->type == 1   ? 4
                          : a->type == 2 ? 2
                                         : 1),
           a->type == 1   ? 4
           : a->type == 2 ? 2
                          : 1);
    return (int32_t)v;
}

#endif

/* embed_files.c - build step: writes files into one C file, each unchanged and compressed with
 * gzip.
 * Usage: embed_files OUT.c FOLDER FILE...   (files relative to the folder)
 *        embed_files --bytes NAME OUT.c FILE   (one file, unchanged: NAME[] and NAME_bytes) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

static const struct {
    const char *ending, *type;
} types[] = {{".html", "text/html; charset=utf-8"},
             {".css", "text/css; charset=utf-8"},
             {".js", "text/javascript; charset=utf-8"},
             {".mjs", "text/javascript; charset=utf-8"},
             {".json", "application/json"},
             {".svg", "image/svg+xml"},
             {".png", "image/png"},
             {".ico", "image/x-icon"},
             {".woff2", "font/woff2"},
             {".txt", "text/plain; charset=utf-8"},
             {".webmanifest", "application/manifest+json"}};

static const char *type_of(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        size_t k = strlen(types[i].ending);
        if (n >= k && strcmp(path + n - k, types[i].ending) == 0)
            return types[i].type;
    }
    return "application/octet-stream";
}

static uint8_t *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        fprintf(stderr, "embed_files: cannot read %s\n", path);
        exit(1);
    }
    long size = ftell(f);
    rewind(f);
    uint8_t *p = malloc((size_t)size + 1);
    if (size < 0 || !p || fread(p, 1, (size_t)size, f) != (size_t)size) {
        fprintf(stderr, "embed_files: cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    *n = (size_t)size;
    return p;
}

static void put_list(FILE *out, const uint8_t *p, size_t n)
{
    for (size_t k = 0; k < n; k++)
        fprintf(out, k % 24 == 0 ? "\n%u," : "%u,", p[k]);
    fprintf(out, "0};\n");
}

static void put_bytes(FILE *out, const char *name, size_t i, const uint8_t *p, size_t n)
{
    fprintf(out, "static const uint8_t %s%zu[] = {", name, i);
    put_list(out, p, n);
}

/* gzip without a time stamp, so that builds are reproducible; 0: the result would not be smaller.
 */
static size_t compress_bytes(const uint8_t *p, size_t n, uint8_t *out, size_t cap)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)p,
                  .avail_in = (uInt)n,
                  .next_out = out,
                  .avail_out = (uInt)cap};
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    int rc = deflate(&z, Z_FINISH);
    deflateEnd(&z);
    return rc == Z_STREAM_END && z.total_out < n ? z.total_out : 0;
}

static int embed_bytes(const char *name, const char *to, const char *from)
{
    size_t n;
    uint8_t *p = read_file(from, &n);
    FILE *out = fopen(to, "w");
    if (!out)
        return 1;
    fprintf(out,
            "/* made by tools/embed_files at build */\n#include <stddef.h>\n#include <stdint.h>\n\n"
            "extern const uint8_t %s[];\nextern const size_t %s_bytes;\n\nconst uint8_t %s[] = {",
            name, name, name);
    put_list(out, p, n);
    fprintf(out, "const size_t %s_bytes = %zu;\n", name, n);
    free(p);
    return fclose(out) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--bytes") == 0)
        return embed_bytes(argv[2], argv[3], argv[4]);
    if (argc < 3) {
        fprintf(stderr, "usage: embed_files OUT.c FOLDER FILE...\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "w");
    if (!out)
        return 1;
    size_t n_files = (size_t)argc - 3;
    size_t *sizes = calloc(2 * n_files + 1, sizeof(*sizes));
    uint64_t *hashes = calloc(n_files + 1, sizeof(*hashes));
    if (!sizes || !hashes)
        return 1;
    fprintf(out,
            "/* made by tools/embed_files at build */\n#include \"gateway/call/assets.h\"\n\n");
    for (size_t i = 0; i < n_files; i++) {
        char path[4096];
        size_t n;
        snprintf(path, sizeof(path), "%s/%s", argv[2], argv[3 + i]);
        uint8_t *p = read_file(path, &n), *z = malloc(n + 1);
        uint64_t h = 0xcbf29ce484222325u;
        for (size_t k = 0; k < n; k++)
            h = (h ^ p[k]) * 0x100000001b3u;
        sizes[2 * i] = n;
        sizes[2 * i + 1] = z && n > 200 ? compress_bytes(p, n, z, n) : 0;
        hashes[i] = h;
        put_bytes(out, "file", i, p, n);
        put_bytes(out, "gzip", i, z, sizes[2 * i + 1]);
        free(p);
        free(z);
    }
    fprintf(out, "const struct asset assets[] = {\n");
    for (size_t i = 0; i < n_files; i++)
        fprintf(out, "    {\"/%s\", \"%s\", \"\\\"%016llx\\\"\", file%zu, %zu, gzip%zu, %zu},\n",
                argv[3 + i], type_of(argv[3 + i]), (unsigned long long)hashes[i], i, sizes[2 * i],
                i, sizes[2 * i + 1]);
    fprintf(out, "    {0, 0, 0, 0, 0, 0, 0}};\nconst size_t n_assets = %zu;\n", n_files);
    free(sizes);
    free(hashes);
    return fclose(out) == 0 ? 0 : 1;
}

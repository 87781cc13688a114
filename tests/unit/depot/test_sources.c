/* test_sources.c - what the names of models mean, which files of a repository are one, where an
 * index has a package, and members of archives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/buf.h"
#include "depot/source/archive.h"
#include "depot/source/byte_sink.h"
#include "depot/source/hub_files.h"
#include "depot/model_place.h"
#include "depot/source/package_index.h"
#include "depot/source/recipe.h"

static void test_places(void **state)
{
    static const struct {
        const char *text;
        int kind; /* -1: refused */
        const char *base, *name, *stored;
    } cases[] = {
        {"smollm2", PLACE_KIND_RECIPE, "", "smollm2", ""},
        {"smollm2:135m", PLACE_KIND_RECIPE, "", "smollm2:135m", ""},
        {"org/repo", PLACE_KIND_HUB, "", "org/repo", ""},
        {"org/repo:Q4_K_M@main", PLACE_KIND_HUB, "", "org/repo:Q4_K_M@main", ""},
        {"hf.co/org/repo", PLACE_KIND_HUB, "", "org/repo", ""},
        {"hf://org/repo", PLACE_KIND_HUB, "", "org/repo", ""},
        {"https://huggingface.co/org/repo", PLACE_KIND_HUB, "", "org/repo", ""},
        {"https://huggingface.co/org/repo/resolve/main/a.gguf", PLACE_KIND_URL, "",
         "https://huggingface.co/org/repo/resolve/main/a.gguf", "a"},
        {"https://host/dir/My%20Model.gguf?x=1", PLACE_KIND_URL, "",
         "https://host/dir/My%20Model.gguf?x=1", "My-20Model"},
        {"box.local/team/m:1", PLACE_KIND_OCI, "https://box.local", "team/m:1",
         "box.local/team/m:1"},
        {"registry:5000/m", PLACE_KIND_OCI, "https://registry:5000", "m", "registry:5000/m"},
        {"localhost:5000/m:1", PLACE_KIND_OCI, "http://localhost:5000", "m:1",
         "localhost:5000/m:1"},
        {"oci://127.0.0.1:5000/m", PLACE_KIND_OCI, "http://127.0.0.1:5000", "m",
         "127.0.0.1:5000/m"},
        {"oci://me:secret@host/m", PLACE_KIND_OCI, "https://me:secret@host", "m", "host/m"},
        {"oci://me:se@cret@host/m", PLACE_KIND_OCI, "https://me:se@cret@host", "m", "host/m"},
        {"me:secret@host.test/m:1", PLACE_KIND_OCI, "https://me:secret@host.test", "m:1",
         "host.test/m:1"},
        {"me:secret@localhost:5000/m", PLACE_KIND_OCI, "http://me:secret@localhost:5000", "m",
         "localhost:5000/m"},
        {"docker://me:secret@host.test/m", PLACE_KIND_OCI, "https://me:secret@host.test", "m",
         "host.test/m"},
        {"docker://ai/smollm2", PLACE_KIND_OCI, "https://registry-1.docker.io", "ai/smollm2",
         "ai/smollm2"},
        {"ollama://qwen3:0.6b", PLACE_KIND_OCI, "https://models.test", "qwen3:0.6b", "qwen3:0.6b"},
        {"shoal://box/tiny", PLACE_KIND_OCI, "http://box:8080", "tiny", "tiny"},
        {"shoal://box:81/team/tiny:1", PLACE_KIND_OCI, "http://box:81", "team/tiny:1",
         "team/tiny:1"},
        {"shoals://box/tiny", PLACE_KIND_OCI, "https://box", "tiny", "tiny"},
        {"/srv/models/a.gguf", PLACE_KIND_PATH, "", "/srv/models/a.gguf", "a"},
        {"./folder/", PLACE_KIND_PATH, "", "./folder/", "folder"},
        {"file:///etc/passwd", -1, "", "", ""},
        {"ftp://host/a.gguf", -1, "", "", ""},
        {"oci://host", -1, "", "", ""},
        {"shoal://host/", -1, "", "", ""},
    };
    struct model_place none;
    struct err why = {0};
    unsetenv("OLLAMA_REGISTRY");
    assert_int_equal(model_place_read(&none, "ollama://qwen3", false, &why), SHOAL_EINVAL);
    assert_non_null(strstr(why.msg, "OLLAMA_REGISTRY"));
    setenv("OLLAMA_REGISTRY", "https://models.test", 1);
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct model_place p;
        struct err e = {0};
        int rc = model_place_read(&p, cases[i].text, false, &e);
        if (cases[i].kind < 0
                ? rc != SHOAL_EINVAL || !e.msg[0]
                : rc != 0 || (int)p.kind != cases[i].kind || strcmp(p.base, cases[i].base) != 0 ||
                      strcmp(p.name, cases[i].name) != 0 || strcmp(p.stored, cases[i].stored) != 0)
            fail_msg("%s: %d %d '%s' '%s' '%s'", cases[i].text, rc, p.kind, p.base, p.name,
                     p.stored);
    }
}

#define LFS(path)                                                                                  \
    "{\"type\":\"file\",\"path\":\"" path "\",\"size\":9,\"oid\":\"x\",\"lfs\":{\"oid\":\""        \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"size\":9}}"
#define SMALL(path)                                                                                \
    "{\"type\":\"file\",\"path\":\"" path                                                          \
    "\",\"size\":5,\"oid\":\"0123456789abcdef0123456789abcdef01234567\"}"

#define FOLDER                                                                                     \
    SMALL("config.json")                                                                           \
    "," LFS("model.safetensors") "," SMALL("README.md") "," SMALL("vocab.txt") "," LFS(            \
        "pytorch_"                                                                                 \
        "model."                                                                                   \
        "bin") "," SMALL(".gitattributes") "," SMALL("1_Pooling/config.json") "," LFS("onnx/"      \
                                                                                      "model."     \
                                                                                      "onnx")

static void test_files_of_a_repository(void **state)
{
    static const struct {
        const char *why, *files, *tag, *want;
        int rc;
    } cases[] = {
        {"the usual quantization", LFS("m-Q8_0.gguf") "," LFS("m-Q4_K_M.gguf"), NULL,
         "m-Q4_K_M.gguf", 0},
        {"by its tag", LFS("m-Q8_0.gguf") "," LFS("m-Q4_K_M.gguf"), "q8_0", "m-Q8_0.gguf", 0},
        {"a tag is a whole word", LFS("m-IQ4_K_M.gguf") "," LFS("m.Q4_K_M.gguf"), "Q4_K_M",
         "m.Q4_K_M.gguf", 0},
        {"by its name", LFS("a/b.gguf") "," LFS("c.gguf"), "a/b.gguf", "a/b.gguf", 0},
        {"the only one", LFS("odd.gguf"), NULL, "odd.gguf", 0},
        {"not a projector", LFS("mmproj-m.gguf") "," LFS("m.gguf"), NULL, "m.gguf", 0},
        {"no such tag", LFS("m-Q8_0.gguf"), "Q2_K", NULL, SHOAL_ENOTFOUND},
        {"in several files", LFS("m-Q4_K_M-00001-of-00002.gguf"), NULL, NULL, SHOAL_EUNSUPPORTED},
        {"a folder", FOLDER, NULL, "config.json model.safetensors vocab.txt 1_Pooling/config.json",
         0},
        {"a folder without settings", LFS("model.safetensors"), NULL, NULL, SHOAL_EUNSUPPORTED},
        {"a path above is no file", LFS("../m.gguf"), NULL, NULL, SHOAL_EUNSUPPORTED},
        {"a file without hash", "{\"type\":\"file\",\"path\":\"m.gguf\",\"size\":5}", NULL, NULL,
         SHOAL_EFORMAT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hub_files f;
        struct arena a;
        struct buf json, names;
        struct err e = {0};
        arena_init(&a, 1 << 20);
        buf_init(&json, 65536);
        buf_init(&names, 65536);
        buf_printf(&json, "[%s]", cases[i].files);
        int rc = hub_files_read(&f, &a, buf_str(&json), json.len, &e);
        if (rc == 0)
            rc = hub_files_choose(&f, cases[i].tag, &e);
        for (uint32_t k = 0; rc == 0 && k < f.n; k++)
            buf_printf(&names, "%s%s", k ? " " : "", f.v[k].path);
        if (rc != cases[i].rc || (rc == 0 && strcmp(buf_str(&names), cases[i].want) != 0))
            fail_msg("%s: %d %s '%s'", cases[i].why, rc, e.msg, buf_str(&names));
        buf_fini(&names);
        buf_fini(&json);
        arena_fini(&a);
    }
}

static void test_links_of_an_index(void **state)
{
    static const struct {
        const char *html, *want; /* NULL: none */
    } cases[] = {
        {"<a href=\"https://wheels.invalid/p/a-1.whl#sha256=12\">",
         "https://wheels.invalid/p/a-1.whl"},
        {"<a href='../../p/a-1.whl#x'>", "https://index.invalid/p/a-1.whl"},
        {"<a href=\"/p/a-1.whl\">", "https://index.invalid/p/a-1.whl"},
        {"<a href=\"a-1.whl\">", "https://index.invalid/simple/a/a-1.whl"},
        {"<a href=\"/p/aa-1.whl\"><a href=\"/p/a-1.whl.metadata\">", NULL},
        {"<a href=\"/q?f=/a-1.whl\">", NULL},
        {"<a href=\"/p/a-1.whl", NULL},
    };
    struct buf url;
    struct err e = {0};
    (void)state;
    buf_init(&url, 2000);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = package_index_pypi(&url, cases[i].html, strlen(cases[i].html),
                                    "https://index.invalid/simple/a/", "a-1.whl", &e);
        if (cases[i].want ? rc != 0 || strcmp(buf_str(&url), cases[i].want) != 0
                          : rc != SHOAL_ENOTFOUND)
            fail_msg("%s: %d %s", cases[i].html, rc, buf_str(&url));
    }
    static const char npm[] = "{\"dist\":{\"tarball\":\"https://r.example/a.tgz\"}}";
    assert_int_equal(package_index_npm(&url, npm, strlen(npm), &e), 0);
    assert_string_equal(buf_str(&url), "https://r.example/a.tgz");
    static const char evil[] = "{\"dist\":{\"tarball\":\"file:///etc/passwd\"}}";
    assert_int_equal(package_index_npm(&url, evil, strlen(evil), &e), SHOAL_EFORMAT);
    buf_fini(&url);
}

/* ---- archives ---- */

static int collect(void *ctx, const void *p, size_t n, struct err *e)
{
    (void)e;
    buf_put(ctx, p, n);
    return 0;
}

/* A gzipped tar: headers for the members, then their bytes. */
static int make_tar(const char *name, char type, const char *bytes, size_t n)
{
    unsigned char block[512] = {0}, zero[1024] = {0};
    int fd = memfd_create("tar", 0);
    gzFile g = gzdopen(dup(fd), "wb");
    unsigned sum = 0;
    snprintf((char *)block, 100, "%s", name);
    snprintf((char *)block + 124, 12, "%011zo", n);
    memset(block + 148, ' ', 8);
    block[156] = (unsigned char)type;
    memcpy(block + 257, "ustar", 6);
    for (size_t i = 0; i < sizeof(block); i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
    assert_int_equal(gzwrite(g, block, sizeof(block)), (int)sizeof(block));
    if (n > 0)
        assert_int_equal(gzwrite(g, bytes, (unsigned)n), (int)n);
    if (n % 512)
        assert_int_equal(gzwrite(g, zero, (unsigned)(512 - n % 512)), (int)(512 - n % 512));
    assert_int_equal(gzwrite(g, zero, sizeof(zero)), (int)sizeof(zero));
    gzclose(g);
    return fd;
}

static void test_members_of_archives(void **state)
{
    static const char text[] = "the bytes of the model";
    const size_t n = strlen(text);
    struct buf out;
    struct err e = {0};
    const struct byte_sink to = {&out, collect};
    (void)state;
    buf_init(&out, 65536);
    int fd = make_tar("package/a.gguf", '0', text, n);
    assert_int_equal(archive_member(fd, "package/a.gguf", n, 0, &to, &e), 0);
    assert_string_equal(buf_str(&out), text);
    buf_clear(&out);
    assert_int_equal(archive_member(fd, "package/a.gguf", n, 4, &to, &e), 0); /* resumed */
    assert_string_equal(buf_str(&out), text + 4);
    buf_clear(&out);
    assert_int_equal(archive_member(fd, "a.gguf", n, 0, &to, &e), SHOAL_ENOTFOUND);
    assert_int_equal(archive_member(fd, "package/a.gguf", n - 1, 0, &to, &e), SHOAL_EFORMAT);
    assert_int_equal(out.len, 0); /* another size: not a byte is given out */
    assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - 20), 0);
    int cut = archive_member(fd, "nothing", n, 0, &to, &e);
    assert_int_equal(cut, SHOAL_EFORMAT);
    close(fd);
    fd = make_tar("package/a.gguf", '2', "", 0); /* a symbolic link */
    assert_int_equal(archive_member(fd, "package/a.gguf", 0, 0, &to, &e), SHOAL_ENOTFOUND);
    close(fd);
    fd = memfd_create("text", 0);
    assert_int_equal(write(fd, text, n), (ssize_t)n);
    assert_int_equal(archive_member(fd, "a", 1, 0, &to, &e), SHOAL_EFORMAT);
    close(fd);
    buf_fini(&out);
}

static void test_the_included_recipes(void **state)
{
    struct recipes *r = NULL;
    struct err e = {0};
    (void)state;
    assert_int_equal(recipes_open(&r, NULL, &e), 0);
    const struct recipe *x = recipes_find(r, "smollm2");
    assert_non_null(x);
    assert_string_equal(x->name, "smollm2:135m-instruct");
    assert_ptr_equal(recipes_find(r, "smollm2:135m-instruct"), x);
    assert_int_equal(x->files[0].bytes, 98362432);
    assert_null(recipes_find(r, "smollm"));
    for (uint32_t i = 0; i < r->n; i++) /* every name is that of one recipe */
        assert_ptr_equal(recipes_find(r, r->v[i].name), &r->v[i]);
    recipes_close(r);
    assert_int_equal(recipes_open(&r, "/nowhere/recipes.json", &e), SHOAL_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_files_of_a_repository),
        cmocka_unit_test(test_links_of_an_index),
        cmocka_unit_test(test_members_of_archives),
        cmocka_unit_test(test_the_included_recipes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

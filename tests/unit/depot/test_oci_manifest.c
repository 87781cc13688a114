/* test_oci_manifest.c - manifests of models in registries: Ollama's, Docker's, ModelPack's, ORAS's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "depot/source/oci_manifest.h"

#define HEX "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"
#define LAYER(kind, digest, size)                                                                  \
    "{\"mediaType\":\"application/vnd.ollama.image." kind "\",\"digest\":\"" digest                \
    "\",\"size\":" size "}"

static void test_manifests(void **state)
{
    static const struct {
        const char *why, *text;
        int want;
    } cases[] = {
        {"a model", "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "]}", 0},
        {"a text without a name is skipped",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") ",{\"mediaType\":\"text/plain\"}]}",
         0},
        {"what is of no use is skipped",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "," LAYER("template", "x", "-1") "]}",
         0},
        {"no JSON", "layers", SHOAL_EFORMAT},
        {"no layers", "{}", SHOAL_EFORMAT},
        {"no model", "{\"layers\":[" LAYER("system", "sha256:" HEX, "12") "]}", SHOAL_EFORMAT},
        {"an empty model", "{\"layers\":[" LAYER("model", "sha256:" HEX, "0") "]}", SHOAL_EFORMAT},
        {"another hash", "{\"layers\":[" LAYER("model", "sha512:" HEX, "1") "]}", SHOAL_EFORMAT},
        {"a path", "{\"layers\":[" LAYER("model", "sha256:../x", "1") "]}", SHOAL_EFORMAT},
        {"a negative size", "{\"layers\":[" LAYER("model", "sha256:" HEX, "-1") "]}",
         SHOAL_EFORMAT},
        {"an infinite size", "{\"layers\":[" LAYER("model", "sha256:" HEX, "1e999") "]}",
         SHOAL_EFORMAT},
        {"too large", "{\"layers\":[" LAYER("model", "sha256:" HEX, "1001") "]}", SHOAL_ELIMIT},
        {"a large text",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "," LAYER("license", "sha256:" HEX,
                                                                       "99999999") "]}",
         SHOAL_ELIMIT},
        {"two files",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "," LAYER("model", "sha256:" HEX,
                                                                       "12") "]}",
         SHOAL_EUNSUPPORTED},
        {"an adapter",
         "{\"layers\":[" LAYER("model", "sha256:" HEX, "12") "," LAYER("adapter", "sha256:" HEX,
                                                                       "12") "]}",
         SHOAL_EUNSUPPORTED},
    };
    static struct oci_manifest m, again;
    struct err e = {0};
    struct buf b;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = oci_manifest_read(&m, cases[i].text, strlen(cases[i].text), 1000, &e);
        if (rc != cases[i].want)
            fail_msg("%s: %d %s", cases[i].why, rc, e.msg);
    }
    assert_int_equal(oci_manifest_read(&m, cases[0].text, strlen(cases[0].text), 1000, &e), 0);
    assert_int_equal(m.n_files, 1);
    assert_false(m.folder);
    assert_int_equal(m.files[0].blob.bytes, 12);
    assert_null(strpbrk(m.files[0].blob.digest, "ABCDEF")); /* digests have one spelling */
    buf_init(&b, OCI_MANIFEST_MAX_BYTES);
    oci_manifest_write(&m, &b);
    assert_int_equal(oci_manifest_read(&again, buf_str(&b), b.len, 1000, &e), 0);
    assert_memory_equal(&m, &again, sizeof(m));
    buf_fini(&b);
}

#define NAMED(type, title, size)                                                                   \
    "{\"mediaType\":\"" type "\",\"digest\":\"sha256:" HEX "\",\"size\":" size                     \
    ",\"annotations\":{" title "}}"
#define TITLE(name) "\"org.opencontainers.image.title\":\"" name "\""
#define FILEPATH(name) "\"org.cncf.model.filepath\":\"" name "\""
#define RAW "application/vnd.cncf.model.weight.v1.raw"

/* Manifests whose layers have names. files: those that are the model, in order. */
static void test_files_with_names(void **state)
{
    static const struct {
        const char *why, *layers, *files;
        bool folder;
        int want;
    } cases[] = {
        {"ORAS: one file", NAMED("application/octet-stream", TITLE("a.gguf"), "5"), "a.gguf", false,
         0},
        {"Docker's model",
         "{\"mediaType\":\"application/vnd.docker.ai.gguf.v3\",\"digest\":\"sha256:" HEX
         "\",\"size\":7}",
         "model.gguf", false, 0},
        {"a GGUF file wins over what lies beside it",
         NAMED("x/y", TITLE("config.json"), "5") "," NAMED("x/y", TITLE("dir/b.gguf"), "5"),
         "b.gguf", false, 0},
        {"ModelPack: a folder; documentation is left out",
         NAMED(RAW, FILEPATH("model.safetensors"), "9") "," NAMED(
             "application/vnd.cncf.model.weight.config.v1.raw", FILEPATH("config.json"),
             "4") "," NAMED("application/vnd.cncf.model.doc.v1.raw", FILEPATH("README.md"), "4"),
         "model.safetensors config.json", true, 0},
        {"a leading ./ says nothing", NAMED(RAW, FILEPATH("./a.gguf"), "9"), "a.gguf", false, 0},
        {"a name above the folder", NAMED("x/y", TITLE("../a.gguf"), "5"), "", false,
         SHOAL_EFORMAT},
        {"an absolute name", NAMED("x/y", TITLE("/etc/a.gguf"), "5"), "", false, SHOAL_EFORMAT},
        {"a name with a way up in it", NAMED("x/y", TITLE("a/../../b"), "5"), "", false,
         SHOAL_EFORMAT},
        {"an archive", NAMED("application/vnd.cncf.model.weight.v1.tar", FILEPATH("a"), "5"), "",
         false, SHOAL_EUNSUPPORTED},
        {"an empty file", NAMED("x/y", TITLE("a.gguf"), "0"), "", false, SHOAL_EFORMAT},
    };
    static struct oci_manifest m;
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct err e = {0};
        struct buf text, names;
        buf_init(&text, 65536);
        buf_init(&names, 65536);
        buf_printf(&text, "{\"layers\":[%s]}", cases[i].layers);
        int rc = oci_manifest_read(&m, buf_str(&text), text.len, 1000, &e);
        if (rc != cases[i].want)
            fail_msg("%s: %d %s", cases[i].why, rc, e.msg);
        for (uint32_t k = 0; rc == 0 && k < m.n_files; k++)
            buf_printf(&names, "%s%s", k ? " " : "", m.files[k].name);
        if (rc == 0 &&
            (strcmp(buf_str(&names), cases[i].files) != 0 || m.folder != cases[i].folder))
            fail_msg("%s: %s", cases[i].why, buf_str(&names));
        buf_fini(&names);
        buf_fini(&text);
    }
}

static void test_an_index_names_a_manifest(void **state)
{
    static const char text[] = "{\"manifests\":[{\"digest\":\"sha256:" HEX "\",\"size\":500}]}";
    static struct oci_manifest m;
    struct err e = {0};
    (void)state;
    assert_int_equal(oci_manifest_read(&m, text, strlen(text), 1000, &e), 0);
    assert_int_equal(m.index.bytes, 500);
    assert_int_equal(m.n_files, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_manifests),
        cmocka_unit_test(test_files_with_names),
        cmocka_unit_test(test_an_index_names_a_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* fuzz_fetch_pb.c - messages between nodes when a model is fetched: requests, chunks, manifests
 * as JSON. The first byte chooses. The result names only paths inside the model's folder, and
 * survives another round trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cluster/store/fetch_pb.h"
#include "depot/store/model_manifest.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void check_manifest(const struct model_manifest *m, const uint8_t model[SHA256_BYTES])
{
    char place[512];
    struct buf b;
    struct fetch_chunk c;
    struct model_manifest again;
    expect(m->n_files >= 1 && m->n_files <= MODEL_MANIFEST_MAX_FILES);
    for (uint32_t i = 0; i < m->n_files; i++) {
        expect(model_manifest_name_ok(m->files[i].name));
        expect(model_manifest_place(place, sizeof(place), m, i));
        expect(place[0] && place[0] != '/');
        expect(strncmp(place, "../", 3) != 0 && !strstr(place, "/../"));
    }
    expect(model_manifest_open_place(place, sizeof(place), m));
    buf_init(&b, FETCH_PB_MAX_CHUNK);
    model_manifest_init(&again);
    expect(fetch_pb_put_manifest(&b, m) == 0);
    expect(fetch_pb_read_chunk(&c, &again, model, (const uint8_t *)b.data, b.len, NULL) == 0);
    expect(c.manifest && again.n_files == m->n_files && strcmp(again.open, m->open) == 0);
    FUZZ_NOTE_BYTES(b.data, b.len);
    model_manifest_fini(&again);
    buf_fini(&b);
}

static void read_request(const uint8_t *p, size_t n)
{
    struct fetch_request r, again;
    struct buf b;
    struct err e = {0};
    const int rc = fetch_pb_read_request(&r, p, n, &e);
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc < 0)
        return;
    buf_init(&b, FETCH_PB_MAX_REQUEST);
    expect(fetch_pb_put_request(&b, &r) == 0);
    expect(fetch_pb_read_request(&again, (const uint8_t *)b.data, b.len, NULL) == 0);
    expect(memcmp(r.model, again.model, SHA256_BYTES) == 0 && r.file == again.file &&
           r.offset == again.offset && r.manifest == again.manifest);
    buf_fini(&b);
}

static void read_chunk(const uint8_t *p, size_t n, const uint8_t model[SHA256_BYTES])
{
    struct fetch_chunk c;
    struct model_manifest m;
    model_manifest_init(&m);
    struct err e = {0};
    const int rc = fetch_pb_read_chunk(&c, &m, model, p, n, &e);
    FUZZ_NOTE("%d %s %zu", rc, e.msg, rc == 0 && !c.manifest ? c.n_data : 0);
    if (rc == 0) {
        if (c.manifest)
            check_manifest(&m, model);
        else
            expect(c.data >= p && c.data + c.n_data == p + n);
    }
    model_manifest_fini(&m);
}

static void read_json(const uint8_t *p, size_t n, const uint8_t model[SHA256_BYTES])
{
    struct model_manifest m;
    model_manifest_init(&m);
    struct err e = {0};
    const int rc = model_manifest_read(&m, p, n, model, &e);
    FUZZ_NOTE("%d %s", rc, e.msg);
    if (rc == 0)
        check_manifest(&m, model);
    model_manifest_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* the model: SHA-256 of "hello", so that a corpus can contain valid ones */
    static const char hex[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    uint8_t model[SHA256_BYTES];
    expect(sha256_read_hex(model, hex));
    if (size == 0)
        return 0;
    if (data[0] % 3 == 0)
        read_request(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        read_chunk(data + 1, size - 1, model);
    else
        read_json(data + 1, size - 1, model);
    return 0;
}

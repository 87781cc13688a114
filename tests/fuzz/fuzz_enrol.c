/* fuzz_enrol.c - what the two sides of 'shoal cluster join --token' send each other, and tokens. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/trust/enrol.h"
#include "support/fuzz_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_token(const uint8_t *data, size_t size)
{
    struct join_token t, again;
    char text[JOIN_TOKEN_TEXT], *given = mem_zalloc(size + 1);
    struct err e;
    if (!given)
        return;
    memcpy(given, data, size);
    const int rc = join_token_parse(&t, given, &e);
    FUZZ_NOTE("%d %s|", rc, rc < 0 ? e.msg : "");
    mem_free(given);
    if (rc < 0)
        return;
    join_token_text(text, &t);
    if (join_token_parse(&again, text, &e) != 0 || memcmp(&t, &again, sizeof(t)) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct enrol_request r;
    struct enrol_files f;
    struct err e;
    uint8_t proof[32];
    fuzz_token(data, size);
    int rc = enrol_parse_request(&r, proof, data, size, &e);
    if (rc == 0 && (!r.name[0] || !r.key))
        abort();
    FUZZ_NOTE("%d %s|", rc, rc < 0 ? e.msg : r.name);
    if (rc == 0)
        EVP_PKEY_free(r.key);
    enrol_files_init(&f);
    rc = enrol_parse_answer(&f, proof, data, size, &e);
    FUZZ_NOTE("%d %s", rc, rc < 0 ? e.msg : buf_str(&f.config));
    enrol_files_fini(&f);
    return 0;
}

/* fuzz_cert.c - a peer's certificate, as DER: the identity it states. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include "cluster/trust/cert.h"
#include "net/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Strings of a certificate end up in terminals, logs and paths. */
static void check_text(const char *text, size_t cap)
{
    if (strnlen(text, cap) == cap)
        abort();
    for (const char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const unsigned char *p = data;
    X509 *cert = d2i_X509(NULL, &p, (long)size);
    struct cert_info c;
    struct tls_peer peer = {.name = ""};
    struct cert_identity id;
    if (cert) {
        cert_describe(&c, cert);
        check_text(c.id.name, sizeof(c.id.name));
        check_text(c.hosts, sizeof(c.hosts));
        check_text(c.issuer, sizeof(c.issuer));
        check_text(c.serial, sizeof(c.serial));
        check_text(c.sha256, sizeof(c.sha256));
        tls_peer_read(&peer, cert);
        check_text(peer.uris, sizeof(peer.uris));
        if (cert_identity(&id, &peer, NULL) == 0 &&
            (!cert_is_name(id.name) || id.roles != c.id.roles || strcmp(id.name, c.id.name) != 0))
            abort(); /* the connection's peer and the file yield the same identity */
    }
    X509_free(cert);
    ERR_clear_error();
    return 0;
}

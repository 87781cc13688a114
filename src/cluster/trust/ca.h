/* ca.h - a private certificate authority in a folder.
 *
 *   ca.key, ca.crt       the key that signs (mode 0600) and its certificate
 *   bundle.pem, crl.pem  the CAs in use and their revocation lists: what members trust
 *   issued/SERIAL.pem    every certificate that was issued
 *   members/NAME/        what to copy to the machine NAME: cert.pem, key.pem, ca.pem, crl.pem
 *   previous/, cross.pem during a rotation: the CA before, and the new one signed by it
 *
 * A rotation drops no connection.  New members' certificates come with cross.pem, so that members
 * who only trust the CA before accept them; members with the new bundle trust both.
 *
 * Thread:    belongs to its caller; a lock on the folder keeps other processes out.
 * Ownership: open/close.
 * Failure:   0 or SHOAL_E* with a text that says what to do. */
#ifndef SHOAL_CLUSTER_TRUST_CA_H
#define SHOAL_CLUSTER_TRUST_CA_H

#include <stdbool.h>
#include <stddef.h>

#include "cluster/trust/cert.h"
#include "cluster/trust/cert_make.h"

struct ca;

enum ca_state { CA_VALID, CA_EXPIRED, CA_REVOKED, CA_FOREIGN };

struct ca_entry {
    struct cert_info cert;
    enum ca_state state;
    bool in_use;   /* the newest certificate of its member */
    bool previous; /* signed by the previous CA */
};

#define CA_MAX_DAYS 36500u

/* Makes the folder and a CA in it.  Refuses to replace one unless force is set. */
SHOAL_MUST_CHECK int ca_init(const char *folder, const char *name, unsigned days, bool force,
                             struct err *e);
SHOAL_MUST_CHECK int ca_open(struct ca **out, const char *folder, struct err *e);
void ca_close(struct ca *ca); /* NULL is fine */
/* The CA that signs, and the previous one during a rotation; false: none. */
void ca_current(const struct ca *ca, struct cert_info *out);
bool ca_previous(const struct ca *ca, struct cert_info *out);
/* Writes members/NAME/; with the request's own key without key.pem.  With force an existing
 * certificate is replaced; roles 0 and n_hosts 0 then mean those of the existing one.  The old
 * certificate stays valid until it expires. */
SHOAL_MUST_CHECK int ca_issue(struct ca *ca, const struct cert_request *r, bool force,
                              struct cert_info *out, struct err *e);
/* A certificate without a role for one day, which is not kept: for the door at which machines with
 * a token knock (enrol.h).  own: that of the CA.  All three are the caller's to free, also on
 * failure.
 */
SHOAL_MUST_CHECK int ca_make_door(struct ca *ca, const char *name, X509 **cert, X509 **own,
                                  EVP_PKEY **key, struct err *e);
/* Every issued certificate, sorted by name and then age; mem_free. */
SHOAL_MUST_CHECK int ca_list(struct ca *ca, struct ca_entry **out, size_t *n, struct err *e);
/* Reads a certificate file and reports its state with respect to this CA; in_use stays false. */
SHOAL_MUST_CHECK int ca_judge(struct ca *ca, const char *path, struct ca_entry *out, struct err *e);
/* Revokes a member's valid certificates, or only one serial number. SHOAL_ENOTFOUND: nothing to
 * revoke. */
SHOAL_MUST_CHECK int ca_revoke(struct ca *ca, const char *name, const char *serial, size_t *n,
                               struct err *e);
/* Begins a rotation: a new key signs, the old CA stays trusted. */
SHOAL_MUST_CHECK int ca_rotate(struct ca *ca, const char *name, unsigned days, struct err *e);
/* Ends it: the old CA is no longer trusted. Refused while a member's certificate is signed by it,
 * unless force is set. */
SHOAL_MUST_CHECK int ca_rotate_finish(struct ca *ca, bool force, struct err *e);
/* "members/NAME" in the folder. */
SHOAL_MUST_CHECK int ca_member_folder(const struct ca *ca, const char *name, char *out, size_t cap,
                                      struct err *e);

#endif

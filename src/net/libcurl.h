/* libcurl.h - the functions of libcurl that are used, from the library of the system.
 *
 * It is opened when it is first needed: other commands should not wait for it and its twenty
 * dependencies.
 *
 * Thread:    any.
 * Ownership: the table is constant and stays.
 * Failure:   SHOAL_EUNSUPPORTED: libcurl is not installed. */
#ifndef SHOAL_NET_LIBCURL_H
#define SHOAL_NET_LIBCURL_H

#include <curl/curl.h>

#include "base/err.h"

struct libcurl { /* functions with the types of curl.h */
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_perform) *easy_perform;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_easy_reset) *easy_reset;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
};

SHOAL_MUST_CHECK int libcurl_get(const struct libcurl **out, struct err *e);

#endif

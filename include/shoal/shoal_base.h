/* shoal_base.h - what the other headers share: symbol visibility, version, sized structs.
 *
 * Sized structs. Every struct of options or information starts with `size`, the size of the struct
 * as its creator knows it. New versions add members at the end only, never in the padding of an old
 * struct, so that a program and a library of different versions still understand each other:
 *   - The caller fills options.  Members beyond `size` take their defaults.  A larger `size` than
 *     the library knows is accepted when the unknown members are zero; otherwise the call fails
 *     with SHOAL_EUNSUPPORTED.  A `size` below sizeof(size_t) is a mistake: SHOAL_EINVAL.
 *   - Information that the caller provides room for (shoal_engine_info) is filled up to `size`.
 *     On return `size` says how much of it the library filled.
 *   - Structs that the library passes to a callback carry the library's `size`.
 * Structs without `size` keep their layout for as long as the major version stays the same.
 *
 * NULL.  These may be NULL:
 *   - `err`, wherever there is one: the code is the same without the text.
 *   - The object of a function that frees, closes, destroys, cancels or wakes: nothing happens.
 *   - The length that a function returns beside a text or an array (`n`, `n_tokens`).
 *   - A text or an array whose length is 0, and whatever a header says may be NULL.
 * Anything else that is NULL is a mistake: the call fails with SHOAL_EINVAL and names the argument.
 * A function that returns no code returns NULL, 0 or "" then, as it does when there is nothing.
 *
 * Texts.  A text with a length may contain NUL; where one has no meaning (messages of a chat,
 * commands of shoal_ask) the call fails and says so: nothing is cut there.  A text without a
 * length ends at its first NUL.
 *
 * Example: the two ways to set `size`, and memory that the library gave.
 *
 *     static int count(const struct shoal_engine *engine, const char *text, size_t *n)
 *     {
 *         struct shoal_task_opts one = {.size = sizeof(one), .max_tokens = 24}; // C, C++20
 *         struct shoal_task_opts two;                                           // any C or C++
 *         SHOAL_INIT(&two);
 *         two.max_tokens = one.max_tokens;
 *         int32_t *tokens;
 *         int rc = shoal_tokenize(engine, text, strlen(text), 0, &tokens, n, NULL);
 *         shoal_free(tokens);
 *         return rc;
 *     }
 *
 * Thread:    the functions below may be called from any thread. */
#ifndef SHOAL_SHOAL_BASE_H
#define SHOAL_SHOAL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shoal/shoal_errors.h"
#include "shoal/shoal_version.h"

#define SHOAL_API __attribute__((visibility("default")))

/* Clears *s and sets its size. */
#define SHOAL_INIT(s) (memset((s), 0, sizeof(*(s))), (void)((s)->size = sizeof(*(s))))

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, which may be newer than SHOAL_VERSION of the headers.
 * "0.1.0", constant; and as SHOAL_VERSION_NUMBER. */
SHOAL_API const char *shoal_version(void);
SHOAL_API int shoal_version_number(void);

/* "NOMEM", "IO", ... and the general text of an error code, for a code without a struct
 * shoal_error; constants, never NULL ("UNKNOWN" for another number). */
SHOAL_API const char *shoal_error_name(int code);
SHOAL_API const char *shoal_error_text(int code);

/* Frees memory that a function of the library gave to the caller; NULL is fine. */
SHOAL_API void shoal_free(void *p);

#ifdef __cplusplus
}
#endif

#endif

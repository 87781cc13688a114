/* shoal_errors.h - every error code of Shoal in one list, and the struct that carries a text.
 *
 * A function that can fail returns 0 or one of the codes, and takes a struct shoal_error for the
 * text: what failed, on what, and why.  The code is for the program, the text for people.
 *
 * Example: tell the user what went wrong, and try again where that can help.
 *
 *     static int open_patiently(struct shoal_engine **engine, const char *path)
 *     {
 *         struct shoal_error err;
 *         int rc = shoal_engine_open(engine, path, NULL, &err);
 *         for (int i = 0; i < 3 && rc == SHOAL_EBUSY; i++) {
 *             sleep(1);
 *             rc = shoal_engine_open(engine, path, NULL, &err);
 *         }
 *         if (rc < 0) // "cannot open model.gguf: No such file or directory"
 *             fprintf(stderr, "%s (%s)\n", err.msg, shoal_error_name(rc));
 *         return rc;
 *     }
 *
 * Thread:    plain data.
 * Ownership: the caller's; the library keeps no pointer to it and no "last error" of its own. */
#ifndef SHOAL_SHOAL_ERRORS_H
#define SHOAL_SHOAL_ERRORS_H

#define SHOAL_ERR_MAP(X)                                                                           \
    X(-1, NOMEM, "out of memory")                                                                  \
    X(-2, IO, "input/output error")                                                                \
    X(-3, FORMAT, "bad format")                                                                    \
    X(-4, LIMIT, "limit exceeded")                                                                 \
    X(-5, BUSY, "overloaded, retry later")                                                         \
    X(-6, INVAL, "invalid argument")                                                               \
    X(-7, UNSUPPORTED, "not supported")                                                            \
    X(-8, CANCELLED, "cancelled")                                                                  \
    X(-9, DEADLINE, "deadline passed")                                                             \
    X(-10, NOTFOUND, "not found")                                                                  \
    X(-11, INTERNAL, "internal error")                                                             \
    X(-12, CHANGED, "a file of the model changed while it was in use: reload the model")           \
    X(-13, NOTFINITE, "the model computed values that are not finite: its weights are damaged")    \
    X(-14, NOTOKEN, "no token of the model can continue the answer under its grammar")

#define SHOAL_ERR_ENUM(n, id, text) SHOAL_E##id = n,
enum { SHOAL_OK = 0, SHOAL_ERR_MAP(SHOAL_ERR_ENUM) };
#undef SHOAL_ERR_ENUM

/* Shoal's own sources call this struct "err", without the prefix that a public name needs.  It is
 * one struct with one definition. */
#ifdef SHOAL_BUILD
#define shoal_error err
#endif

/* Belongs to the caller, usually on its stack; means something only after a failure.  Its layout
 * never changes.  Every function that takes one accepts NULL. */
struct shoal_error {
    int code;      /* SHOAL_E* */
    char msg[320]; /* a sentence for a person, NUL-terminated */
};

#endif

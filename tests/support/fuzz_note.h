/* fuzz_note.h - what a fuzz target made of an input, for the comparison with what it made of it
 * before (fuzz/replay_main.c).  Under libFuzzer nobody listens.
 *
 * Thread: one. */
#ifndef SHOAL_TESTS_FUZZ_NOTE_H
#define SHOAL_TESTS_FUZZ_NOTE_H

#include <stddef.h>

__attribute__((weak, format(printf, 1, 2))) void fuzz_note(const char *format, ...);
__attribute__((weak)) void fuzz_note_bytes(const void *p, size_t n);

#define FUZZ_NOTE(...) (fuzz_note ? fuzz_note(__VA_ARGS__) : (void)0)
#define FUZZ_NOTE_BYTES(p, n) (fuzz_note_bytes ? fuzz_note_bytes(p, n) : (void)0)

#endif

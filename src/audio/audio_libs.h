/* audio_libs.h - the functions of libsndfile and libsamplerate that are used, from the libraries of
 * the system.
 *
 * They are opened when a sound is first read: other commands should not wait for them and the
 * codecs that they depend on.
 *
 * Thread:    any.
 * Ownership: the tables are constant and stay.
 * Failure:   SHOAL_EUNSUPPORTED: the library is not installed. */
#ifndef SHOAL_AUDIO_AUDIO_LIBS_H
#define SHOAL_AUDIO_AUDIO_LIBS_H

#include <samplerate.h>
#include <sndfile.h>

#include "base/err.h"

struct audio_libs { /* functions with the types of sndfile.h and samplerate.h */
    __typeof__(sf_open_virtual) *open_virtual;
    __typeof__(sf_readf_float) *readf_float;
    __typeof__(sf_writef_short) *writef_short;
    __typeof__(sf_format_check) *format_check;
    __typeof__(sf_close) *close;
    __typeof__(sf_error) *error;
    __typeof__(sf_error_number) *error_number;
    __typeof__(src_new) *src_new;
    __typeof__(src_process) *src_process;
    __typeof__(src_strerror) *src_strerror;
    __typeof__(src_delete) *src_delete;
};

SHOAL_MUST_CHECK int audio_libs_get(const struct audio_libs **out, struct err *e);

#endif

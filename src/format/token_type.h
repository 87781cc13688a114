/* token_type.h - what kind of token an entry of a vocabulary is, numbered as in GGUF. */
#ifndef SHOAL_FORMAT_TOKEN_TYPE_H
#define SHOAL_FORMAT_TOKEN_TYPE_H

enum token_type {
    TOKEN_TYPE_NORMAL = 1,
    TOKEN_TYPE_UNKNOWN = 2,
    TOKEN_TYPE_CONTROL = 3,
    TOKEN_TYPE_USER_DEFINED = 4,
    TOKEN_TYPE_UNUSED = 5,
    TOKEN_TYPE_BYTE = 6,
};

#endif

/* token_type.h - what kind of token an entry of a vocabulary is, numbered as in GGUF. */
#ifndef SHOAL_FORMAT_TOKEN_TYPE_H
#define SHOAL_FORMAT_TOKEN_TYPE_H

enum tokenizer_type {
    TOKENIZER_TYPE_NORMAL = 1,
    TOKENIZER_TYPE_UNKNOWN = 2,
    TOKENIZER_TYPE_CONTROL = 3,
    TOKENIZER_TYPE_USER_DEFINED = 4,
    TOKENIZER_TYPE_UNUSED = 5,
    TOKENIZER_TYPE_BYTE = 6,
};

#endif

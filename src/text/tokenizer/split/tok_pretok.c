/* tok_pretok.c - see tok_pretok.h.  The table of pre-tokenizers, and the chain that runs them.
 *
 * The expressions are those of the models' own tokenizers, in the syntax of PCRE2 and with two
 * changes that do not alter what they match: \s is spelled out as the White_Space property (PCRE2's
 * own \s also has U+180E), and parts that would try every suffix of a long run are anchored or
 * possessive, so that no text takes quadratic time. */
#include "text/tokenizer/split/tok_pretok.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer/split/tok_regex.h"
#include "text/tokenizer/split/tok_split.h"

#define MAX_STEPS 6

#define WS TOK_REGEX_WS
#define S "[" WS "]"
#define REST S "+(?![^" WS "])|" S "+"
#define CONTRACT "'(?:[sStTmMdD]|[rRvV][eE]|[lL][lL])"

#define RX_GPT2 "'(?:[stmd]|[rv]e|ll)| ?\\p{L}+| ?\\p{N}+| ?[^" WS "\\p{L}\\p{N}]+|" REST
#define RX_CL100K(contract, number, tail)                                                          \
    contract "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" number "| ?[^" WS "\\p{L}\\p{N}]+" tail "|" S  \
             "*[\\r\\n]+|" REST
#define RX_QWEN35                                                                                  \
    CONTRACT "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS                               \
             "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" S "*[\\r\\n]+|" REST
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define RX_O200K(contract, number, tail)                                                           \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" contract "|[^\\r\\n\\p{L}\\p{N}]?" UPPER          \
    "+" LOWER "*" contract "|\\p{N}" number "| ?[^" WS "\\p{L}\\p{N}]+" tail "|" S                 \
    "*[\\r\\n]+|" REST
#define NOT_HAN(class) "(?:(?!\\p{Han})" class ")"
#define RX_KIMI                                                                                    \
    "\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?" NOT_HAN(UPPER) "*" NOT_HAN(                                 \
        LOWER) "+(?:" CONTRACT                                                                     \
               ")?|[^\\r\\n\\p{L}\\p{N}]?" NOT_HAN(UPPER) "+" NOT_HAN(                             \
                   LOWER) "*(?:" CONTRACT ")?|\\p{N}{1,3}| ?[^" WS "\\p{L}\\p{N}]+[\\r\\n]*|" S    \
                          "*[\\r\\n]+|" REST
#define RX_DEEPSEEK3(punct_tail, newlines)                                                         \
    "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "                      \
    "?[\\p{P}\\p{S}]+" punct_tail "|" newlines "|" REST
#define RX_CJK "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define RX_CJK_WIDE "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"
#define RX_BLOOM " ?[^(" WS "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"
/* letters that have case, as deepseek-llm lists them */
#define DEEPSEEK_LETTERS                                                                           \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"                 \
    "\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}"         \
    "\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}"                  \
    "\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}"                       \
    "\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}"                 \
    "\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}"                 \
    "\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}"                 \
    "\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}"         \
    "\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}"                           \
    "\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}"                 \
    "\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}"          \
    "\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}"                  \
    "\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}"         \
    "\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}"                  \
    "\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"                 \
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}"                 \
    "\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}"         \
    "\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

struct step {
    tok_split_fn scan; /* NULL: the regex */
    unsigned opts;
    const char *regex;
};

#define RX(text)                                                                                   \
    {                                                                                              \
        NULL, 0, text                                                                              \
    }
#define GPT2                                                                                       \
    {                                                                                              \
        tok_split_gpt2, 0, RX_GPT2                                                                 \
    }
#define CL100K(contract, number, tail, opts)                                                       \
    {                                                                                              \
        tok_split_cl100k, opts, RX_CL100K(contract, number, tail)                                  \
    }
#define LLAMA3                                                                                     \
    CL100K(CONTRACT "|", "{1,3}", "[\\r\\n]*",                                                     \
           TOK_SPLIT_CONTRACT | TOK_SPLIT_N3 | TOK_SPLIT_TAIL_NL)
#define QWEN2                                                                                      \
    CL100K(CONTRACT "|", "", "[\\r\\n]*", TOK_SPLIT_CONTRACT | TOK_SPLIT_N1 | TOK_SPLIT_TAIL_NL)
#define O200K(contract, number, tail, opts)                                                        \
    {                                                                                              \
        tok_split_o200k, opts, RX_O200K(contract, number, tail)                                    \
    }
#define GPT4O                                                                                      \
    O200K("(?:" CONTRACT ")?", "{1,3}", "[\\r\\n/]*",                                              \
          TOK_SPLIT_CONTRACT | TOK_SPLIT_N3 | TOK_SPLIT_TAIL_NL | TOK_SPLIT_TAIL_SLASH)
#define NUMBERS(number, opts)                                                                      \
    {                                                                                              \
        tok_split_numbers, opts, "\\p{N}" number                                                   \
    }
#define THOUSANDS                                                                                  \
    {                                                                                              \
        tok_split_thousands, 0, "\\p{N}{1,3}(?=(?:\\p{N}{3})*+(?!\\p{N}))"                         \
    }
#define LINES                                                                                      \
    {                                                                                              \
        tok_split_lines, 0, "[^\\n]+|\\n+"                                                         \
    }

enum chain_id {
    CHAIN_DEFAULT,
    CHAIN_GPT2,
    CHAIN_DIGITS,
    CHAIN_FALCON,
    CHAIN_LLAMA3,
    CHAIN_QWEN2,
    CHAIN_QWEN35,
    CHAIN_GPT4O,
    CHAIN_TEKKEN,
    CHAIN_TINY_AYA,
    CHAIN_KIMI,
    CHAIN_YOUTU,
    CHAIN_DEEPSEEK_LLM,
    CHAIN_DEEPSEEK_CODER,
    CHAIN_DEEPSEEK3,
    CHAIN_SPARK,
    CHAIN_AFMOE,
    CHAIN_BLOOM,
    CHAIN_VIKING,
    CHAIN_CHAMELEON,
    CHAIN_JAIS2,
    CHAIN_SUPERBPE,
    CHAIN_SEED_CODER,
    CHAIN_NO_CONTRACT,
    CHAIN_LAGUNA,
    CHAIN_EXAONE_MOE,
    CHAIN_MINICPM5,
    CHAIN_LINES,
};

static const struct step chains[][MAX_STEPS] = {
    [CHAIN_DEFAULT] = {RX("[\\p{P}$+<=>^~|]+"), GPT2, NUMBERS("+", 0), RX("[0-9][0-9][0-9]")},
    [CHAIN_GPT2] = {GPT2},
    [CHAIN_DIGITS] = {NUMBERS("", TOK_SPLIT_N1), GPT2},
    [CHAIN_FALCON] = {RX("[\\p{P}$+<=>^~|`]+"), GPT2, RX("[0-9][0-9][0-9]")},
    [CHAIN_LLAMA3] = {LLAMA3},
    [CHAIN_QWEN2] = {QWEN2},
    [CHAIN_QWEN35] = {{tok_split_cl100k,
                       TOK_SPLIT_CONTRACT | TOK_SPLIT_N1 | TOK_SPLIT_MARKS | TOK_SPLIT_TAIL_NL,
                       RX_QWEN35}},
    [CHAIN_GPT4O] = {GPT4O},
    [CHAIN_TEKKEN] = {O200K("", "", "[\\r\\n/]*",
                            TOK_SPLIT_N1 | TOK_SPLIT_TAIL_NL | TOK_SPLIT_TAIL_SLASH)},
    [CHAIN_TINY_AYA] = {{tok_split_thousands, TOK_SPLIT_WORD_END,
                         "\\p{Nd}{1,3}(?=(?:\\p{Nd}{3})*(?![\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}]))"},
                        GPT4O},
    [CHAIN_KIMI] = {{tok_split_o200k,
                     TOK_SPLIT_HAN | TOK_SPLIT_CONTRACT | TOK_SPLIT_N3 | TOK_SPLIT_TAIL_NL,
                     RX_KIMI}},
    [CHAIN_YOUTU] = {RX("[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+|"
                        "[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}\\x{2014}\\x{ff1a}"
                        "\\x{ff1b}\\x{ff0c}\\x{3001}-\\x{303f}\\x{fe30}-\\x{fe4f}]+|"
                        "[\\x{3105}-\\x{312f}]+|" RX_CJK),
                     O200K("(?:" CONTRACT ")?", "", "[\\r\\n/]*",
                           TOK_SPLIT_CONTRACT | TOK_SPLIT_N1 | TOK_SPLIT_TAIL_NL |
                               TOK_SPLIT_TAIL_SLASH)},
    [CHAIN_DEEPSEEK_LLM] = {RX("[\\r\\n]"), RX(S "?[" DEEPSEEK_LETTERS "]+"),
                            RX(S "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}"
                                 "\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+"),
                            RX("(?<!" S ")" S "++\\z"), RX(RX_CJK_WIDE), NUMBERS("+", 0)},
    [CHAIN_DEEPSEEK_CODER] = {RX("[\\r\\n]"), RX(S "?\\p{L}+"), RX(S "?\\p{P}+"), RX(RX_CJK_WIDE),
                              NUMBERS("", TOK_SPLIT_N1)},
    [CHAIN_DEEPSEEK3] = {NUMBERS("{1,3}", TOK_SPLIT_N3), RX(RX_CJK),
                         RX(RX_DEEPSEEK3("[\\r\\n]*", S "*[\\r\\n]+"))},
    [CHAIN_SPARK] = {NUMBERS("{1,3}", TOK_SPLIT_N3), RX(RX_CJK), RX(RX_DEEPSEEK3("", "[\\r\\n]")),
                     NUMBERS("", TOK_SPLIT_N1)},
    [CHAIN_AFMOE] = {THOUSANDS,
                     RX("[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{8c48}-\\x{faff}"
                        "\\x{3040}-\\x{30ff}\\x{ff65}-\\x{ff9f}\\x{2f00}-\\x{2fdf}"
                        "\\x{e40}-\\x{eff}\\x{1780}-\\x{17ff}\\x{1000}-\\x{109f}"
                        "\\x{aa60}-\\x{aa7f}\\x{a9e0}-\\x{a9ff}\\x{ac00}-\\x{d7af}"
                        "\\x{1100}-\\x{11ff}]+"),
                     RX(RX_DEEPSEEK3("[\\r\\n]*", S "*[\\r\\n]+"))},
    [CHAIN_BLOOM] = {RX(RX_BLOOM)},
    [CHAIN_VIKING] = {RX(RX_BLOOM), NUMBERS("", TOK_SPLIT_N1)},
    [CHAIN_CHAMELEON] = {RX("<sentinel:[0-9]+>"), RX("IMGIMG[A-I]{1,4}Z"), RX("[\\t\\n]|    |  "),
                         NUMBERS("", TOK_SPLIT_N1), RX("[\\p{P}!-/:-@\\[-`{-~]"), GPT2},
    [CHAIN_JAIS2] = {{tok_split_cl100k,
                      TOK_SPLIT_CONTRACT | TOK_SPLIT_N3 | TOK_SPLIT_TAIL_NL | TOK_SPLIT_CASCADE,
                      CONTRACT "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^" WS
                               "\\p{L}\\p{N}]+[\\r\\n]*|" S "*[\\r\\n]+|(?:" S "{512}|" S "{256}|" S
                               "{128}|" S "{64}|" S "{32}|" S "{16}|" S "{8}|" S "{4}|" S
                               "{1,2})(?![^" WS "])|" S}},
    [CHAIN_SUPERBPE] = {NUMBERS("+", 0), THOUSANDS},
    [CHAIN_SEED_CODER] = {CL100K(CONTRACT "|", "", "", TOK_SPLIT_CONTRACT | TOK_SPLIT_N1)},
    [CHAIN_NO_CONTRACT] = {CL100K("", "", "[\\r\\n]*", TOK_SPLIT_N1 | TOK_SPLIT_TAIL_NL)},
    [CHAIN_LAGUNA] = {LINES, QWEN2},
    [CHAIN_EXAONE_MOE] = {RX(CONTRACT "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*+"
                                      "(?: \\p{L}\\p{M}*+)*+)++|\\p{N}| ?[^" WS
                                      "\\p{L}\\p{N}]+[\\r\\n/]?|" S "*[\\r\\n]|" REST)},
    [CHAIN_MINICPM5] = {NUMBERS("{1,3}", TOK_SPLIT_N3),
                        CL100K(CONTRACT "|", "+", "[\\r\\n]*",
                               TOK_SPLIT_CONTRACT | TOK_SPLIT_TAIL_NL)},
    [CHAIN_LINES] = {LINES},
};

#define LLAMA3_TRAITS (TOK_PRETOK_IGNORE_MERGES | TOK_PRETOK_ADD_BOS)
#define GEMMA4_TRAITS (TOK_PRETOK_CHARS | TOK_PRETOK_NEWLINE_RUNS | TOK_PRETOK_FORCE_BOS)

static const struct known {
    const char *name;
    enum chain_id chain;
    unsigned traits;
} known[] = {
    {"default", CHAIN_DEFAULT, 0},
    {"llama3", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"llama-v3", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"llama-bpe", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"falcon3", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"falcon-h1", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"pixtral", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"midm-2.0", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"lfm2", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"jina-v5-nano", CHAIN_LLAMA3, LLAMA3_TRAITS},
    {"dbrx", CHAIN_LLAMA3, 0},
    {"smaug-bpe", CHAIN_LLAMA3, 0},
    {"glm4", CHAIN_LLAMA3, 0},
    {"chatglm-bpe", CHAIN_LLAMA3, 0},
    {"gpt-2", CHAIN_GPT2, 0},
    {"phi-2", CHAIN_GPT2, 0},
    {"jina-es", CHAIN_GPT2, 0},
    {"jina-de", CHAIN_GPT2, 0},
    {"jina-v2-es", CHAIN_GPT2, 0},
    {"jina-v2-de", CHAIN_GPT2, 0},
    {"jina-v1-en", CHAIN_GPT2, TOK_PRETOK_ADD_SEP},
    {"jina-v2-code", CHAIN_GPT2, TOK_PRETOK_ADD_SEP},
    {"roberta-bpe", CHAIN_GPT2, TOK_PRETOK_ADD_SEP},
    {"gigachat", CHAIN_GPT2, 0},
    {"a.x-4.0", CHAIN_GPT2, 0},
    {"mellum", CHAIN_GPT2, 0},
    {"modern-bert", CHAIN_GPT2, 0},
    {"exaone4", CHAIN_GPT2, 0},
    {"mpt", CHAIN_GPT2, 0},
    {"olmo", CHAIN_GPT2, 0},
    {"jais", CHAIN_GPT2, 0},
    {"trillion", CHAIN_GPT2, 0},
    {"granite-docling", CHAIN_GPT2, 0},
    {"starcoder", CHAIN_DIGITS, 0},
    {"refact", CHAIN_DIGITS, 0},
    {"command-r", CHAIN_DIGITS, 0},
    {"smollm", CHAIN_DIGITS, 0},
    {"codeshell", CHAIN_DIGITS, 0},
    {"exaone", CHAIN_DIGITS, 0},
    {"minerva-7b", CHAIN_DIGITS, 0},
    {"mellum2", CHAIN_DIGITS, 0},
    {"falcon", CHAIN_FALCON, 0},
    {"qwen2", CHAIN_QWEN2, 0},
    {"deepseek-r1-qwen", CHAIN_QWEN2, 0},
    {"kormo", CHAIN_QWEN2, 0},
    {"f2llmv2", CHAIN_QWEN2, 0},
    {"megrez", CHAIN_QWEN2, 0},
    {"stablelm2", CHAIN_QWEN2, 0},
    {"hunyuan", CHAIN_QWEN2, 0},
    {"solar-open", CHAIN_QWEN2, 0},
    {"grok-2", CHAIN_QWEN2, 0},
    {"bailingmoe", CHAIN_QWEN2, 0},
    {"bailingmoe2", CHAIN_QWEN2, 0},
    {"llada-moe", CHAIN_QWEN2, 0},
    {"qwen35", CHAIN_QWEN35, 0},
    {"gpt-4o", CHAIN_GPT4O, 0},
    {"o200k", CHAIN_GPT4O, 0},
    {"llama4", CHAIN_GPT4O, 0},
    {"kanana2", CHAIN_GPT4O, 0},
    {"talkie", CHAIN_GPT4O, 0},
    {"minimax-m2", CHAIN_GPT4O, 0},
    {"granite-embed-multi-97m", CHAIN_GPT4O, TOK_PRETOK_IGNORE_MERGES},
    {"tekken", CHAIN_TEKKEN, LLAMA3_TRAITS},
    {"tiny_aya", CHAIN_TINY_AYA, 0},
    {"cohere2moe", CHAIN_TINY_AYA, 0},
    {"kimi-k2", CHAIN_KIMI, 0},
    {"youtu", CHAIN_YOUTU, TOK_PRETOK_IGNORE_MERGES},
    {"deepseek-llm", CHAIN_DEEPSEEK_LLM, 0},
    {"deepseek-coder", CHAIN_DEEPSEEK_CODER, 0},
    {"deepseek-v3", CHAIN_DEEPSEEK3, 0},
    {"hunyuan-dense", CHAIN_DEEPSEEK3, 0},
    {"joyai-llm", CHAIN_DEEPSEEK3, 0},
    {"hy_v4", CHAIN_DEEPSEEK3, 0},
    {"spark2_5", CHAIN_SPARK, 0},
    {"afmoe", CHAIN_AFMOE, 0},
    {"bloom", CHAIN_BLOOM, 0},
    {"poro-chat", CHAIN_BLOOM, 0},
    {"gpt3-finnish", CHAIN_BLOOM, 0},
    {"viking", CHAIN_VIKING, 0},
    {"chameleon", CHAIN_CHAMELEON, TOK_PRETOK_ADD_BOS},
    {"jais-2", CHAIN_JAIS2, 0},
    {"superbpe", CHAIN_SUPERBPE, 0},
    {"seed-coder", CHAIN_SEED_CODER, 0},
    {"ufakzeka", CHAIN_NO_CONTRACT, 0},
    {"laguna", CHAIN_LAGUNA, 0},
    {"exaone-moe", CHAIN_EXAONE_MOE, 0},
    {"minicpm5", CHAIN_MINICPM5, TOK_PRETOK_IGNORE_MERGES},
    {"gemma4", CHAIN_LINES, GEMMA4_TRAITS},
    {"granite-embed-multi-311m", CHAIN_LINES, GEMMA4_TRAITS},
    {"sarvam-moe", CHAIN_LINES, TOK_PRETOK_CHARS},
};

#define N_KNOWN (sizeof(known) / sizeof(known[0]))

struct tok_pretok {
    const struct known *def;
    const struct step *steps;
    unsigned n_steps;
    struct tok_regex *code[MAX_STEPS]; /* NULL: the step has a scanner */
};

const char *tok_pretok_name(size_t i)
{
    return i < N_KNOWN ? known[i].name : NULL;
}

unsigned tok_pretok_traits(const struct tok_pretok *pt)
{
    return pt->def->traits;
}

int tok_pretok_create(struct tok_pretok **out, const char *name, enum tok_pretok_mode mode,
                      struct err *e)
{
    const struct known *def = NULL;
    int rc = 0;
    *out = NULL;
    for (size_t i = 0; i < N_KNOWN && !def; i++)
        if (strcmp(known[i].name, name) == 0)
            def = &known[i];
    if (!def)
        return err_set(e, SHOAL_EUNSUPPORTED, "pre-tokenizer \"%.64s\" is not supported", name);
    struct tok_pretok *pt = mem_zalloc(sizeof(*pt));
    if (!pt)
        return err_set(e, SHOAL_ENOMEM, "out of memory for the pre-tokenizer");
    pt->def = def;
    pt->steps = chains[def->chain];
    while (pt->n_steps < MAX_STEPS && pt->steps[pt->n_steps].regex)
        pt->n_steps++;
    for (unsigned i = 0; i < pt->n_steps && rc == 0; i++)
        if (!pt->steps[i].scan || mode == TOK_PRETOK_REGEX_ONLY)
            rc = tok_regex_create(&pt->code[i], pt->steps[i].regex, strlen(pt->steps[i].regex),
                                  true, e);
    if (rc < 0)
        goto out;
    *out = pt;
    pt = NULL;
out:
    tok_pretok_destroy(pt);
    return rc;
}

void tok_pretok_destroy(struct tok_pretok *pt)
{
    if (!pt)
        return;
    for (unsigned i = 0; i < pt->n_steps; i++)
        tok_regex_destroy(pt->code[i]);
    mem_free(pt);
}

void tok_pretok_scratch_fini(struct tok_pretok_scratch *s)
{
    tok_regex_match_free(s->match);
    mem_free(s->clean);
    *s = (struct tok_pretok_scratch){0};
}

struct tok_split_run {
    const struct tok_pretok *pt;
    struct tok_pretok_scratch *s;
    const char *subject; /* the text to match: the input, or a copy without invalid bytes */
    const char *text;    /* the input, at the same offsets */
    tok_pretok_word_fn word;
    void *ctx;
};

static int cut(const struct tok_split_run *r, const char *p, size_t n, unsigned step);

static int cut_by_scan(const struct tok_split_run *r, const char *p, size_t n, unsigned step)
{
    const struct step *st = &r->pt->steps[step];
    const uint8_t *q = (const uint8_t *)p, *end = q + n;
    size_t state = 0;
    while (q < end) {
        size_t len = st->scan(q, end, st->opts, &state);
        int rc = cut(r, (const char *)q, len, step + 1);
        if (rc < 0)
            return rc;
        q += len;
    }
    return 0;
}

static int cut_by_regex(const struct tok_split_run *r, const char *p, size_t n, unsigned step)
{
    size_t at = 0;
    int rc = 0;
    while (at < n && rc == 0) {
        size_t from = n, to = n;
        int m = tok_regex_find(r->pt->code[step], &r->s->match, p, n, at, &from, &to);
        if (m < 0)
            return m;
        if (from > at)
            rc = cut(r, p + at, from - at, step + 1);
        if (rc == 0 && to > from)
            rc = cut(r, p + from, to - from, step + 1);
        at = to > at ? to : n; /* no expression matches the empty string; never loop if one does */
    }
    return rc;
}

/* One piece through the steps from `step` on.  The depth is the length of the chain. */
static int cut(const struct tok_split_run *r, const char *p, size_t n, unsigned step)
{
    if (step == r->pt->n_steps)
        return r->word(r->ctx, r->text + (p - r->subject), n);
    return r->pt->code[step] ? cut_by_regex(r, p, n, step) : cut_by_scan(r, p, n, step);
}

/* A copy of the text with a control character in place of each byte that is not UTF-8: PCRE2 needs
 * valid UTF-8, and this keeps the offsets. */
static int clean_copy(struct tok_pretok_scratch *s, const char *p, size_t n, size_t valid)
{
    if (n > s->cap_clean) {
        char *bigger = mem_realloc(s->clean, n);
        if (!bigger)
            return SHOAL_ENOMEM;
        s->clean = bigger;
        s->cap_clean = n;
    }
    memcpy(s->clean, p, n);
    while (valid < n) {
        s->clean[valid++] = 1;
        valid += utf8_valid_prefix(p + valid, n - valid);
    }
    return 0;
}

int tok_pretok_split(const struct tok_pretok *pt, struct tok_pretok_scratch *s, const char *p,
                     size_t n, tok_pretok_word_fn word, void *ctx)
{
    struct tok_split_run r = {pt, s, p, p, word, ctx};
    bool regex = false;
    for (unsigned i = 0; i < pt->n_steps; i++)
        regex |= pt->code[i] != NULL;
    if (n == 0)
        return 0;
    if (regex) {
        size_t valid = utf8_valid_prefix(p, n);
        if (valid < n) {
            int rc = clean_copy(s, p, n, valid);
            if (rc < 0)
                return rc;
            r.subject = s->clean;
        }
    }
    return cut(&r, r.subject, n, 0);
}

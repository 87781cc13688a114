/* test_commands.c - what commands print, by a table of command lines.  In a line, $ stands for the
 * folder of test data, ~ for an empty folder of the test, and _ for a blank in an argument. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/file/file_read.h"
#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"

#define MAX_WORDS 32

static char dir[64];

static int make_dir(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/shoal-commands-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

/* The words of a line; returns how many. */
static int split(const char *line, char *room, size_t cap, const char **words)
{
    int n = 0;
    size_t k = 0;
    bool inside = false;
    for (const char *p = line; *p; p++) {
        const char *more = *p == '$' ? SHOAL_TEST_DATA : *p == '~' ? dir : NULL;
        if (*p == ' ') {
            room[k++] = '\0';
            inside = false;
            continue;
        }
        if (!inside)
            words[n++] = room + k;
        inside = true;
        assert_true(n < MAX_WORDS && k + strlen(more ? more : "") + 2 < cap);
        if (more)
            k += (size_t)snprintf(room + k, cap - k, "%s", more);
        else
            room[k++] = *p == '_' ? ' ' : *p;
    }
    room[k] = '\0';
    return n;
}

/* What was written to a file, with the folders replaced. */
static void read_back(FILE *f, struct buf *out)
{
    static const char *const folders[] = {SHOAL_TEST_DATA, dir};
    char piece[4096];
    rewind(f);
    for (size_t n; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
        buf_put(out, piece, n);
    for (size_t i = 0; out->len > 0 && i < 2; i++)
        for (char *p = out->data; (p = strstr(p, folders[i]));) {
            size_t n = strlen(folders[i]);
            *p++ = i == 0 ? '$' : '~';
            memmove(p, p + n - 1, strlen(p + n - 1) + 1);
        }
    out->len = out->data ? strlen(out->data) : 0;
}

/* Times differ from run to run, and scratch memory by the CPU: each such number becomes a T. */
static void hide_times(struct buf *b)
{
    static const char *const keys[] = {"_ms\":", "scratch_bytes\":", "scratch ", " tokens) = "};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        for (char *p = b->data; p && (p = strstr(p, keys[i]));) {
            p += strlen(keys[i]);
            size_t n = strspn(p, "0123456789.e-");
            if (n == 0)
                continue; /* a text about it */
            *p = 'T';
            memmove(p + 1, p + n, strlen(p + n) + 1);
        }
    b->len = b->data ? strlen(b->data) : 0;
}

/* Runs a line; returns the exit code.  out: what it wrote to both outputs. */
static int run(const char *line, struct buf *out)
{
    char room[2048];
    const char *words[MAX_WORDS];
    const int n = split(line, room, sizeof(room), words);
    const struct command *c = commands_find(commands_all, words[0]);
    FILE *f = tmpfile();
    assert_true(n > 0 && c && f);
    fflush(stdout);
    fflush(stderr);
    const int keep[] = {dup(1), dup(2)};
    assert_true(dup2(fileno(f), 1) >= 0 && dup2(fileno(f), 2) >= 0);
    const int rc = commands_run(c, n - 1, words + 1);
    fflush(stdout);
    fflush(stderr);
    assert_true(dup2(keep[0], 1) >= 0 && dup2(keep[1], 2) >= 0);
    close(keep[0]);
    close(keep[1]);
    buf_init(out, 1 << 24);
    read_back(f, out);
    hide_times(out);
    fclose(f);
    return rc;
}

static void test_lines(void **state)
{
    static const struct {
        const char *line;
        int code;
        const char *want;
    } rows[] = {
        {"tokenize -m $/refs/qwen3.gguf hello_there", 0, "258 108 108 111 259 114 101\n"},
        {"tokenize -m $/refs/qwen3.gguf --json hello", 0,
         "{\"n\":4,\"tokens\":[258,108,108,111],\"pieces\":[\"he\",\"l\",\"l\",\"o\"]}\n"},
        {"detokenize -m $/refs/qwen3.gguf 258 108,108 [111]", 0, "hello"},
        {"detokenize -m $/refs/qwen3.gguf --json 258 108", 0,
         "{\"text\":\"hel\",\"n\":2,\"tokens\":[258,108],\"pieces\":[\"he\",\"l\"]}\n"},
        {"detokenize -m $/refs/qwen3.gguf x", 2,
         "shoal detokenize: x is not a token id\n"
         "Try 'shoal detokenize --help'.\n"},
        {"model show $/refs/qwen3.gguf", 0,
         "$/refs/qwen3.gguf\n"
         "file           GGUF v3, 262.2 KiB, 0.1 M parameters\n"
         "architecture   qwen3, 2 layers of 64, 4 heads (2 for keys and values) of 32\n"
         "               feed-forward 160, vocabulary 300, trained for 2048 tokens\n"
         "memory         weights 254.0 KiB + scratch T KiB + cache 1.0 MiB (2048 tokens) = T MiB\n"
         "tokenizer      bpe qwen2, 300 tokens, BOS 297, EOS 299, chat template: no\n"
         "tensors        F16        15 tensors  253.5 KiB  16.00 bits per weight\n"
         "               F32         9 tensors    1.8 KiB  32.00 bits per weight\n"
         "metadata\n"
         "  general.architecture = \"qwen3\"\n"
         "  general.name = \"qwen3\"\n"
         "  general.file_type = 1\n"
         "  qwen3.context_length = 2048\n"
         "  qwen3.embedding_length = 64\n"
         "  qwen3.block_count = 2\n"
         "  qwen3.feed_forward_length = 160\n"
         "  qwen3.attention.head_count = 4\n"
         "  qwen3.attention.head_count_kv = 2\n"
         "  qwen3.attention.layer_norm_rms_epsilon = 1e-06\n"
         "  qwen3.attention.key_length = 32\n"
         "  qwen3.attention.value_length = 32\n"
         "  qwen3.rope.freq_base = 1000000\n"
         "  tokenizer.ggml.model = \"gpt2\"\n"
         "  tokenizer.ggml.pre = \"qwen2\"\n"
         "  tokenizer.ggml.tokens = [\"Ā\",\"ā\",\"Ă\",\"ă\",\"Ą\",\"ą\",\"Ć\",\"ć\"]... (300 in "
         "total)\n"
         "  tokenizer.ggml.token_type = [1,1,1,1,1,1,1,1]... (300 in total)\n"
         "  tokenizer.ggml.merges = [\"Ġ t\",\"Ġ a\",\"h e\",\"Ġt he\",\"Ġ w\",\"Ġw a\",\"g "
         "u\",\"e s\"]... (41 in total)\n"
         "  tokenizer.ggml.bos_token_id = 297\n"
         "  tokenizer.ggml.eos_token_id = 299\n"
         "  tokenizer.ggml.add_bos_token = false\n"},
        {"model show $/refs/qwen3.gguf --json", 0,
         "{\"file\":\"$/refs/"
         "qwen3.gguf\",\"file_bytes\":268512,\"version\":3,\"n_params\":130240,\"tensor_bytes\":"
         "261376,\"n_tensors\":24,\"architecture\":{\"name\":\"qwen3\",\"kind\":\"decoder\",\"n_"
         "vocab\":300,\"n_ctx_train\":2048,\"n_layers\":2,\"dim\":64,\"n_heads\":4,\"n_kv_heads\":"
         "2,\"head_dim\":32,\"ffn_dim\":160,\"window\":0},\"memory\":{\"weights_bytes\":260096,"
         "\"scratch_bytes\":T,\"kv_bytes_per_token\":512,\"n_ctx\":2048},\"tokenizer\":{\"kind\":"
         "\"bpe\",\"model\":\"gpt2\",\"pre\":\"qwen2\",\"n_vocab\":300,\"bos\":297,\"eos\":299,"
         "\"add_bos\":false,\"chat_template\":false},\"types\":[{\"type\":\"F16\",\"tensors\":15,"
         "\"params\":129792,\"bytes\":259584},{\"type\":\"F32\",\"tensors\":9,\"params\":448,"
         "\"bytes\":1792}],\"metadata\":{\"general.architecture\":\"qwen3\",\"general.name\":"
         "\"qwen3\",\"general.file_type\":1,\"qwen3.context_length\":2048,\"qwen3.embedding_"
         "length\":64,\"qwen3.block_count\":2,\"qwen3.feed_forward_length\":160,\"qwen3.attention."
         "head_count\":4,\"qwen3.attention.head_count_kv\":2,\"qwen3.attention.layer_norm_rms_"
         "epsilon\":1e-06,\"qwen3.attention.key_length\":32,\"qwen3.attention.value_length\":32,"
         "\"qwen3.rope.freq_base\":1000000,\"tokenizer.ggml.model\":\"gpt2\",\"tokenizer.ggml."
         "pre\":\"qwen2\",\"tokenizer.ggml.tokens\":{\"elements\":300},\"tokenizer.ggml.token_"
         "type\":{\"elements\":300},\"tokenizer.ggml.merges\":[\"Ġ t\",\"Ġ a\",\"h e\",\"Ġt "
         "he\",\"Ġ w\",\"Ġw a\",\"g u\",\"e s\",\"b o\",\"Ġwa k\",\"Ġwak es\",\"Ġwakes :\",\"Ġwa "
         "i\",\"Ġwai t\",\"Ġt i\",\"Ġti d\",\"Ġtid e\",\"Ġtide .\",\"Ġa s\",\"Ġas k\",\"Ġask "
         "s\",\"Ġa r\",\"Ġar gu\",\"Ġargu e\",\"Ġargue ,\",\"Ġa n\",\"Ġan d\",\"Ġ r\",\"Ġr "
         "o\",\"Ġro p\",\"Ġrop es\",\"Ġ o\",\"Ġo l\",\"Ġol d\",\"Ġ h\",\"Ġh a\",\"Ġha r\",\"Ġhar "
         "bo\",\"Ġharbo u\",\"Ġharbou r\",\"Ġ "
         "gu\"],\"tokenizer.ggml.bos_token_id\":297,\"tokenizer.ggml.eos_token_id\":299,"
         "\"tokenizer.ggml.add_bos_token\":false}}\n"},
        {"model show $/none.gguf", 1,
         "shoal model show: cannot open $/none.gguf: No such file or directory\n"},
        {"model", 2,
         "Shows, converts and quantizes model files; loads and unloads the models of a server.\n"
         "\n"
         "Usage: shoal model <verb> [options]\n"
         "\n"
         "Verbs:\n"
         "  show         show the contents of a model file\n"
         "  convert      convert a Hugging Face folder or llama2.c checkpoint to GGUF\n"
         "  quantize     quantize a model to fewer bits per weight\n"
         "  lora         merge a LoRA adapter into its base model\n"
         "  sign         sign a model with a key or a certificate\n"
         "  verify       check who signed a model, and that it is what was signed\n"
         "  encrypt      encrypt a model, so that a stolen disk does not give it away\n"
         "  decrypt      write the plain file of an encrypted model\n"
         "  delta        write a new version of a model as a patch of the old one\n"
         "  patch        make the new version of a model of the old one and a patch\n"
         "  list         list the models of a running server\n"
         "  load         load a model on a running server\n"
         "  unload       unload a model from a running server's memory\n"
         "\n"
         "'shoal model <verb> --help' shows the options of a verb.\n"},
        {"model shw", 2,
         "shoal model: unknown verb shw (did you mean show?)\n"
         "Try 'shoal model --help'.\n"},
        {"classify -m $/encoders/bert-cls --no-cache --json --top 1 a_red_house", 0,
         "{\"text\":\"a red "
         "house\",\"model\":\"$/encoders/"
         "bert-cls\",\"label\":\"maybe\",\"confidence\":0.43700615,\"labels\":[{\"label\":"
         "\"maybe\",\"score\":0.43700615}],\"tokens\":11,\"batch\":1,\"queue_ms\":T,\"run_ms\":T,"
         "\"total_ms\":T}\n"},
        {"classify -m $/encoders/bert-cls --no-cache a_red_house", 0,
         "maybe 0.437  yes 0.417  no 0.146\n"},
        {"tag -m $/encoders/bert-tag --no-cache --json anna_lives_in_paris", 0,
         "{\"text\":\"anna lives in "
         "paris\",\"model\":\"$/encoders/bert-tag\",\"spans\":[{\"label\":\"PER\",\"text\":\"anna "
         "lives in "
         "paris\",\"start\":0,\"end\":19,\"score\":0.75100064}],\"tokens\":14,\"batch\":1,\"queue_"
         "ms\":T,\"run_ms\":T,\"total_ms\":T}\n"},
        {"tag -m $/encoders/bert-tag --no-cache anna_lives_in_paris", 0,
         "PER=anna lives in paris\n"},
        {"embed -m $/encoders/bert --no-cache --json -d 2 a_red_house", 0,
         "{\"text\":\"a red "
         "house\",\"model\":\"$/encoders/"
         "bert\",\"embedding\":[-0.90595746,0.42336884],\"tokens\":11,\"batch\":1,\"queue_ms\":T,"
         "\"run_ms\":T,\"total_ms\":T}\n"},
        {"rerank -m $/encoders/bert --no-cache house a_red_house two_cats", 0,
         "0.9410  two cats\n"
         "0.9392  a red house\n"},
        {"rerank -m $/encoders/bert --no-cache --json --top 1 house a_red_house two_cats", 0,
         "{\"model\":\"$/encoders/bert\",\"index\":1,\"score\":0.9409929910128658,\"text\":\"two "
         "cats\"}\n"},
        {"pii call_me_at_+1_212_555_0147_or_mail_ann@example.org", 0,
         "phone   international     11     26  +1 212 555 0147\n"
         "email   -                 35     50  ann@example.org\n"},
        {"pii --json mail_ann@example.org", 0,
         "{\"found\":[{\"kind\":\"email\",\"start\":5,\"end\":20,\"text\":\"ann@example.org\"}],"
         "\"masked\":\"mail [email]\"}\n"},
        {"pii nothing_here", 0, ""},
        {"eval pii $/none.jsonl", 1,
         "shoal eval pii: cannot open $/none.jsonl: No such file or directory\n"},
        {"config explain listen", 0,
         "listen: list of texts, at most 8\n"
         "  Addresses for clients: HOST:PORT or unix:PATH. Port 0 takes a free one. Default: "
         "127.0.0.1:8080 for `shoal serve` and `shoal gateway`, none for `shoal node`.\n"
         "  A change takes effect after a restart.\n"},
        {"config explain lissten", 1,
         "shoal config explain: there is no key 'lissten' (did you mean 'listen'?); 'shoal config "
         "explain' lists all\n"},
        {"config check $/none.yaml", 1,
         "shoal config check: cannot open $/none.yaml: No such file or directory\n"},
        {"flow check $/flows/template.yaml", 0, "echo: 1 step\n"},
        {"flow check $/none.yaml", 1,
         "shoal flow check: cannot open $/none.yaml: No such file or directory\n"},
        {"flow draw $/flows/template.yaml", 0,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"638\" height=\"94\" viewBox=\"0 0 638 "
         "94\" role=\"img\">\n"
         "<title>echo</title>\n"
         "<style>text{font-family:system-ui,sans-serif;text-anchor:middle}.name{font-size:14px;"
         "font-weight:600;fill:#1b2733}.kind{font-size:12px;fill:#5a6b7b}.title{font-size:15px;"
         "font-weight:600;fill:#1b2733}.step{fill:#eef4fb;stroke:#3b74b8}.lazy{fill:#fff;stroke:#"
         "3b74b8;stroke-dasharray:5 "
         "4}.acts{fill:#fdf1e3;stroke:#c07a1b}.end{fill:#e9f6ec;stroke:#3c8d53}.edge{fill:none;"
         "stroke:#8596a6;stroke-width:1.5;marker-end:url(#a)}.lead{fill:none;stroke:#8596a6;stroke-"
         "width:1.5;stroke-dasharray:5 4;marker-end:url(#a)}</style>\n"
         "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
         "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
         "fill=\"#8596a6\"/></marker></defs>\n"
         "<path d=\"M174 47 C209 47 209 47 244 47\" class=\"edge\"/>\n"
         "<path d=\"M394 47 C429 47 429 47 464 47\" class=\"edge\"/>\n"
         "<rect x=\"24\" y=\"24\" width=\"150\" height=\"46\" rx=\"8\" class=\"end\"/>\n"
         "<text x=\"99\" y=\"44\" class=\"name\">input</text>\n"
         "<text x=\"99\" y=\"60\" class=\"kind\">text</text>\n"
         "<rect x=\"244\" y=\"24\" width=\"150\" height=\"46\" rx=\"8\" class=\"step\"/>\n"
         "<text x=\"319\" y=\"44\" class=\"name\">said</text>\n"
         "<text x=\"319\" y=\"60\" class=\"kind\">template</text>\n"
         "<rect x=\"464\" y=\"24\" width=\"150\" height=\"46\" rx=\"8\" class=\"end\"/>\n"
         "<text x=\"539\" y=\"44\" class=\"name\">output</text>\n"
         "<text x=\"539\" y=\"60\" class=\"kind\">a text</text>\n"
         "</svg>\n"},
        {"home list $/ask/homes/workshop.yaml", 0,
         "joinery\n"
         "\n"
         "type     id                           name                     room             "
         "abilities\n"
         "room     shop                         machine room                             \n"
         "room     paint                        paint booth                              \n"
         "room     yard                         yard                                     \n"
         "room     office                       office                                   \n"
         "device   shop_lights                  lights                   machine room     power, "
         "brightness, color\n"
         "device   paint_lights                 lights                   paint booth      power, "
         "brightness, color\n"
         "device   office_lamp                  desk lamp                office           power, "
         "brightness, color\n"
         "device   extractor                    dust extractor           machine room     power, "
         "mode, run\n"
         "device   booth_fan                    exhaust fan              paint booth      power, "
         "mode, run\n"
         "device   roller_door                  roller door              yard             open, "
         "lock\n"
         "device   office_heating               heating                  office           power, "
         "temperature, mode\n"
         "device   booth_heater                 booth heater             paint booth      power, "
         "temperature, mode, run\n"
         "device   shop_radio                   radio                    machine room     power, "
         "volume, sound, mode, run\n"
         "machine  saw_1                        table saw                                 run, "
         "power, setting, temperature, mode, open\n"
         "machine  saw_2                        band saw                                  run, "
         "power, setting, temperature, mode, open\n"
         "machine  planer                       planer                                    run, "
         "power, setting, temperature, mode, open\n"
         "machine  router_5                     router 5                                  run, "
         "power, setting, temperature, mode, open\n"
         "machine  compressor                   compressor                                run, "
         "power, setting, temperature, mode, open\n"
         "person   joe                          Joe                                      \n"
         "person   lena                         Lena                                     \n"
         "scene    closing                      closing time                             \n"},
        {"home check $/ask/homes/workshop.yaml", 0,
         "$/ask/homes/workshop.yaml: 21 things, no error\n"},
        {"home check $/none.yaml", 1,
         "shoal home check: cannot open $/none.yaml: No such file or directory\n"},
        {"generate --counter=x", 2,
         "shoal generate: unknown option --counter\n"
         "Try 'shoal generate --help'.\n"},
        {"generate -n 0x a", 2,
         "shoal generate: --max-tokens is 0x, expected a whole number from 0 to 16777216\n"
         "Try 'shoal generate --help'.\n"},
        {"store list --store ~", 0,
         "SHA-256           STATE            SIZE  LAST USED             FILE\n"},
        {"store list --json --store ~", 0, "{\"store\":\"~\",\"models\":[]}\n"},
        {"router fit", 2,
         "shoal router fit: missing argument: FILE...\n"
         "Try 'shoal router fit --help'.\n"},
        {"anomaly fit", 2,
         "shoal anomaly fit: missing argument: DATA.csv\n"
         "Try 'shoal anomaly fit --help'.\n"},
        {"index stats --dir ~", 0, "there are no collections: create one with 'shoal index add'\n"},
        {"index query --dir ~ docs pump", 1,
         "shoal index query: there is no collection 'docs' in ~\n"},
        {"index remove --dir ~ docs", 2,
         "shoal index remove: name the documents to remove, or use --all\n"
         "Try 'shoal index remove --help'.\n"},
        {"model list --server nowhere", 1,
         "shoal model list: nowhere has no port: write HOST:PORT or unix:PATH\n"},
        {"embed -m $/none a", 1, "shoal embed: cannot open $/none: No such file or directory\n"},
        {"score -m $/scorers/gru 1,2,3", 1,
         "shoal score: rows have 3 values, the model reads 5; choose columns with --columns "
         "A,B,...\n"},
        {"score -m $/scorers/gru 1,2,3,4,5", 1,
         "shoal score: got 1 row, but the model needs 20 at a time\n"},
        {"store add --store ~ $/refs/qwen3.gguf", 0,
         "3571ed30ea1361eae66e2310c06ede0007cd9aae396e2d2af1ca298488dbb58c\n"},
        {"store verify --store ~", 0, "3571ed30ea1361ea  good\n"},
        {"index query --dir ~ docs", 2,
         "shoal index query: missing argument: COLLECTION QUERY\n"
         "Try 'shoal index query --help'.\n"},
        {"eval", 2,
         "Measures quality and speed of models on data sets: one JSON object per line, - means "
         "stdin.\n"
         "Latency is measured from submitting a row to its result; for score, per row of a "
         "stream.\n"
         "\n"
         "Usage: shoal eval <verb> [options]\n"
         "\n"
         "Verbs:\n"
         "  classify     labels of texts: accuracy, F1, calibration\n"
         "  tag          spans of texts: F1 of whole spans\n"
         "  embed        embeddings: nearest neighbours, or retrieval\n"
         "  rerank       retrieval with every pair scored\n"
         "  summarize    summaries: ROUGE\n"
         "  score        scores of tables: anomalies, classes, numbers\n"
         "  perplexity   how well a model predicts a text\n"
         "  cascade      two classifiers, the larger one for uncertain inputs\n"
         "  ask          texts with the actions they must cause\n"
         "  pii          texts with personal data: what the rules find\n"
         "\n"
         "'shoal eval <verb> --help' shows the options of a verb.\n"},
        {"eval classify -m $/encoders/bert-cls $/none.csv", 1,
         "shoal eval classify: cannot open $/none.csv: No such file or directory\n"},
        {"embed -m $/refs/qwen3.gguf --no-cache a", 1,
         "shoal embed: the model '$/refs/qwen3.gguf' cannot embed; it can: generate\n"},
        {"generate -m $/encoders/bert-cls --no-cache a", 1,
         "shoal generate: the model '$/encoders/bert-cls' cannot generate; it can: classify\n"},
        {"config explain limits", 0,
         "limits: map\n"
         "  Limits for clients.\n"
         "  Keys:\n"
         "    body                 Bytes of one request's body.\n"
         "    headers              Bytes of one request's headers.\n"
         "    connections          Open connections of one event loop.\n"
         "    streams              Requests at once on one HTTP/2 connection.\n"
         "    in_flight            Requests at once of all clients together. 0: no limit.\n"
         "    request_timeout      How long a client may take to send a request.\n"
         "    idle_timeout         A connection without a request is closed after this time.\n"
         "    write_timeout        A connection is closed if its client reads nothing for this "
         "long.\n"
         "    buffers              Memory held for all clients. Default: three times "
         "`client_buffers`.\n"
         "    client_buffers       Memory held for one client address. Default: 48 MiB, or three "
         "bodies if that is more.\n"
         "    resets               HTTP/2 streams of a client address that may be reset in ten "
         "seconds. 0: no limit.\n"
         "    values               JSON values in one body.\n"},
        {"flow trace $/flows/template.yaml echo hello", 2,
         "shoal flow trace: unexpected argument hello\n"
         "Try 'shoal flow trace --help'.\n"},
        {"flow run $/flows/template.yaml echo hello", 2,
         "shoal flow run: unexpected argument hello\n"
         "Try 'shoal flow run --help'.\n"},
    };
    size_t n_wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out;
        const int rc = run(rows[i].line, &out);
        if (rc != rows[i].code || strcmp(buf_str(&out), rows[i].want) != 0) {
            fprintf(stderr, "shoal %s: exit code %d, and it wrote\n%s\n", rows[i].line, rc,
                    buf_str(&out));
            n_wrong++;
        }
        buf_fini(&out);
    }
    assert_int_equal(n_wrong, 0);
}

/* The page of a command: usage and every option, in lines that a terminal shows whole; and an
 * option that it does not have is refused with a hint at that page. */
static uint32_t check_page(const char *name, bool shown_by_verbs)
{
    char line[128], usage[128];
    struct buf out;
    snprintf(line, sizeof(line), "%s --help", name);
    snprintf(usage, sizeof(usage), "\nUsage: shoal %s %s", name,
             shown_by_verbs ? "<verb> [options]\n" : "[options]");
    assert_int_equal(run(line, &out), CMD_OK);
    if (!strstr(buf_str(&out), usage))
        fail_msg("%s: no usage in %s", name, buf_str(&out));
    for (const char *p = buf_str(&out); *p; p += strcspn(p, "\n") + 1)
        if (strcspn(p, "\n") > 100)
            fail_msg("%s: a line of %zu bytes: %.60s", name, strcspn(p, "\n"), p);
    uint32_t n = 0;
    const char *verbs = strstr(buf_str(&out), "\nVerbs:\n");
    assert_int_equal(verbs != NULL, shown_by_verbs);
    for (const char *p = verbs ? verbs + 8 : ""; strncmp(p, "  ", 2) == 0; n++) {
        char verb[64];
        snprintf(verb, sizeof(verb), "%s %.*s", name, (int)strcspn(p + 2, " "), p + 2);
        check_page(verb, false);
        p += strcspn(p, "\n") + 1;
    }
    if (!verbs) {
        assert_non_null(strstr(buf_str(&out), "\nGeneral:\n"));
        assert_non_null(strstr(buf_str(&out), "\n  -h, --help                  show this help\n"));
        assert_non_null(strstr(buf_str(&out), "--log-level error|warn|info|debug\n"));
    }
    buf_fini(&out);
    snprintf(line, sizeof(line), "%s --zqxj", name);
    assert_int_equal(run(line, &out), CMD_USAGE);
    assert_non_null(strstr(buf_str(&out), verbs ? "unknown verb --zqxj" : "unknown option --zqxj"));
    snprintf(usage, sizeof(usage), "\nTry 'shoal %s --help'.\n", name);
    assert_non_null(strstr(buf_str(&out), usage));
    buf_fini(&out);
    return n;
}

static void test_every_page(void **state)
{
    uint32_t n = 0, n_verbs = 0;
    (void)state;
    for (const struct command *c = commands_all; c->name; c++, n++)
        if (strcmp(c->name, "completion") != 0 && strcmp(c->name, "manual") != 0)
            n_verbs += check_page(c->name, !c->run);
    assert_true(n > 20 && n_verbs > 40);
}

/* Whether a command prints a file of the tree. */
static void check_file(const char *line, const char *path)
{
    struct buf out, want;
    struct err e = {0};
    buf_init(&want, 1 << 24);
    if (file_read(path, &want, &e) < 0)
        fail_msg("%s", e.msg);
    hide_times(&want);
    assert_int_equal(run(line, &out), CMD_OK);
    if (strcmp(buf_str(&out), buf_str(&want)) != 0)
        fail_msg("shoal %s is not %s:\n%s", line, path, buf_str(&out));
    buf_fini(&out);
    buf_fini(&want);
}

static void test_pages_of_the_tree(void **state)
{
    static const char golden[] = SHOAL_TEST_DATA "/../integration/golden/help-";
    glob_t found;
    (void)state;
    check_file("config reference", SHOAL_TEST_DATA "/../../docs/CONFIG.md");
    assert_int_equal(glob(SHOAL_TEST_DATA "/../integration/golden/help-*", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 60);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char line[128];
        const char *name = found.gl_pathv[i] + sizeof(golden) - 1;
        snprintf(line, sizeof(line), "%.*s", (int)strcspn(name, "."), name);
        line[strcspn(line, "-")] = ' '; /* the verb */
        line[strlen(name) - strlen(".txt")] = '\0';
        strcat(line, " --help");
        check_file(line, found.gl_pathv[i]);
    }
    globfree(&found);
}

/* Calls fn for each long option that a page of help lists. */
static uint32_t each_option(const char *page, void (*fn)(const char *option, void *ctx), void *ctx)
{
    uint32_t n = 0;
    for (const char *p = page; (p = strstr(p, "\n  ")); p++) {
        const char *at = p + 3 + strspn(p + 3, " ");
        at += at[0] == '-' && at[1] != '-' ? 4 : 0; /* behind "-x, " */
        if (strncmp(at, "--", 2) != 0 || at - p > 8)
            continue;
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 2, " =\n"), at + 2);
        fn(name, ctx);
        n++;
    }
    return n;
}

struct listing {
    const char *command, *shell, *text;
};

static void check_listed(const char *option, void *ctx)
{
    const struct listing *l = ctx;
    if (!strstr(l->text, option))
        fail_msg("%s of shoal %s is not in the completion of %s", option, l->command, l->shell);
}

/* Every command, every verb and every option is completed, in lines of the shell's own form. */
static void test_completions(void **state)
{
    static const struct {
        const char *shell, *part;
    } shells[] = {
        {"bash", "complete -F "}, {"zsh", "#compdef shoal"}, {"fish", "complete -c shoal "}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct buf text, page;
        char line[64];
        uint32_t n_options = 0;
        snprintf(line, sizeof(line), "completion %s", shells[i].shell);
        assert_int_equal(run(line, &text), CMD_OK);
        if (!strstr(buf_str(&text), shells[i].part))
            fail_msg("%s: %.200s", shells[i].shell, buf_str(&text));
        for (const struct command *c = commands_all; c->name; c++) {
            struct listing l = {c->name, shells[i].shell, buf_str(&text)};
            check_listed(c->name, &l);
            if (!c->run || strcmp(c->name, "completion") == 0 || strcmp(c->name, "manual") == 0)
                continue;
            snprintf(line, sizeof(line), "%s --help", c->name);
            assert_int_equal(run(line, &page), CMD_OK);
            n_options += each_option(buf_str(&page), check_listed, &l);
            buf_fini(&page);
        }
        assert_true(n_options > 200);
        buf_fini(&text);
    }
    struct buf out;
    assert_int_equal(run("completion csh", &out), CMD_USAGE);
    buf_fini(&out);
}

/* The manual has a section for each command, with its usage. */
static void test_manual(void **state)
{
    struct buf text;
    (void)state;
    assert_int_equal(run("manual", &text), CMD_OK);
    for (const struct command *c = commands_all; c->name; c++)
        if (!strstr(buf_str(&text), c->name))
            fail_msg("the manual has no %s", c->name);
    assert_non_null(strstr(buf_str(&text), ".TH "));
    assert_non_null(strstr(buf_str(&text), ".SH NAME"));
    buf_fini(&text);
}

static void test_names(void **state)
{
    (void)state;
    assert_non_null(commands_find(commands_all, "serve"));
    assert_null(commands_find(commands_all, "serv"));
    assert_string_equal(commands_nearest(commands_all, "serv"), "serve");
    assert_string_equal(commands_nearest(commands_all, "versoin"), "version");
    assert_string_equal(commands_nearest(commands_all, "hlp"), "help");
    assert_null(commands_nearest(commands_all, "zzzzzzzz"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_page, make_dir, remove_dir),
        cmocka_unit_test(test_pages_of_the_tree),
        cmocka_unit_test(test_completions),
        cmocka_unit_test(test_manual),
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_lines, make_dir, remove_dir),
    };
    if (setenv("SHOAL_MODELS", SHOAL_TEST_DATA "/../../models", 1) != 0)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

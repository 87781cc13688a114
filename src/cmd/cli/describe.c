/* describe.c - see describe.h. */
#include "cmd/cli/describe.h"

#include <stdio.h>
#include <string.h>

#include "cmd/cli/command.h"
#include "cmd/cli/opts.h"
#include "shoal/shoal_version.h"

struct form {
    const char *name;
    void (*begin)(const struct command *all, describe_verbs verbs_of);
    void (*page)(const struct opts_page *page);
    void (*end)(const struct command *all, describe_verbs verbs_of);
};

/* ---- shared by all forms -------------------------------------------------------------------- */

/* Calls fn for every option of a page, the general options last. */
static void each_option(const struct opts_page *page, void (*fn)(const struct opts_def *d))
{
    for (size_t g = 0; g < OPTS_MAX_GROUPS && page->groups[g]; g++)
        for (size_t i = 0; i < page->groups[g]->n_defs; i++)
            fn(&page->groups[g]->defs[i]);
    for (size_t i = 0; i < opts_common.n_defs; i++)
        fn(&opts_common.defs[i]);
}

/* True if a value or argument of this name in the help is a file. */
static bool is_file(const char *name)
{
    static const char *const words[] = {"FILE", "PATH", "MODEL", "DATASET", "IN OUT"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

/* Writes text with `escape` before every character of `special`, for use inside single quotes: a
 * quote is written as the end of the quotes, an escaped quote, and a new start. */
static void put_quoted(const char *text, const char *special, char escape)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(special, *text))
            putchar(escape);
        putchar(*text == '\n' ? ' ' : *text);
    }
}

/* The words of "a|b|c", separated by blanks. */
static void put_choices(const char *words)
{
    for (; *words; words++)
        putchar(*words == '|' ? ' ' : *words);
}

static void put_names(const struct command *list)
{
    for (; list->name; list++)
        printf("%s%s", list->name, list[1].name ? " " : "");
}

/* ---- bash ----------------------------------------------------------------------------------- */

static void bash_begin(const struct command *all, describe_verbs verbs_of)
{
    (void)verbs_of;
    (void)all;
    puts("# bash completion for shoal; written by 'shoal completion bash'.\n"
         "\n"
         "# _shoal_page COMMAND OPTION: what may follow: options of the command, words or files.\n"
         "_shoal_page()\n"
         "{\n"
         "    case \"$1\" in");
}

static void bash_name(const struct opts_def *d)
{
    if (d->letter)
        printf(" -%c", d->letter);
    printf(" --%s", d->name);
}

static void bash_value(const struct opts_def *d)
{
    if (d->type == OPTS_FLAG)
        return;
    fputs("        ", stdout);
    if (d->letter)
        printf("-%c | ", d->letter);
    printf("--%s) value=1", d->name);
    if (d->type == OPTS_CHOICE) {
        fputs(" words='", stdout);
        put_choices(d->value);
        putchar('\'');
    } else if (strcmp(d->value, "DIR") == 0) {
        fputs(" files=-d", stdout);
    } else if (is_file(d->value)) {
        fputs(" files=-f", stdout);
    }
    puts(" ;;");
}

static void bash_page(const struct opts_page *page)
{
    printf("    '%s')\n        options='", page->command);
    each_option(page, bash_name);
    printf("' arguments=%s\n        case \"$2\" in\n", is_file(page->arguments) ? "-f" : "");
    each_option(page, bash_value);
    puts("        esac\n        ;;");
}

/* "a | b": the commands that have verbs. */
static void bash_with_verbs(const struct command *all, describe_verbs verbs_of)
{
    const char *between = "";
    for (; all->name; all++)
        if (verbs_of(all->name)) {
            printf("%s%s", between, all->name);
            between = " | ";
        }
}

static void bash_end(const struct command *all, describe_verbs verbs_of)
{
    fputs("    esac\n"
          "}\n"
          "\n"
          "_shoal()\n"
          "{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev= command= word i\n"
          "    local options= arguments= value= words= files=\n"
          "    [ \"$COMP_CWORD\" -lt 1 ] || prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    if [ \"$cur\" = = ]; then # --option=\n"
          "        cur=\n"
          "    elif [ \"$prev\" = = ] && [ \"$COMP_CWORD\" -ge 2 ]; then\n"
          "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
          "        word=${COMP_WORDS[i]}\n"
          "        case \"$word\" in\n"
          "        --log-level | --log-format) ((i++)) ;;\n"
          "        -*) [ -z \"$command\" ] || break ;;\n"
          "        *)\n"
          "            case \"$command\" in\n"
          "            '') command=$word ;;\n"
          "            ",
          stdout);
    bash_with_verbs(all, verbs_of);
    fputs(") command=\"$command $word\" && break ;;\n"
          "            *) break ;;\n"
          "            esac\n"
          "            ;;\n"
          "        esac\n"
          "    done\n"
          "    case \"$command\" in\n"
          "    '') words='",
          stdout);
    put_names(all);
    fputs(" help version' ;;\n    help) words='", stdout);
    put_names(all);
    puts("' ;;");
    for (const struct command *c = all; c->name; c++)
        if (verbs_of(c->name)) {
            printf("    %s) words='", c->name);
            put_names(verbs_of(c->name));
            puts("' ;;");
        }
    puts("    *)\n"
         "        _shoal_page \"$command\" \"$prev\"\n"
         "        if [ -z \"$value\" ] && [[ $cur == -* ]]; then\n"
         "            words=$options\n"
         "        elif [ -z \"$value\" ]; then\n"
         "            files=$arguments\n"
         "        fi\n"
         "        ;;\n"
         "    esac\n"
         "    COMPREPLY=()\n"
         "    if [ -n \"$words\" ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "    elif [ -n \"$files\" ]; then\n"
         "        compopt -o filenames 2>/dev/null\n"
         "        mapfile -t COMPREPLY < <(compgen \"$files\" -- \"$cur\")\n"
         "    fi\n"
         "}\n"
         "complete -F _shoal shoal");
}

/* ---- zsh ------------------------------------------------------------------------------------ */

static void zsh_list(const char *name, const struct command *list)
{
    printf("    %s=(\n", name);
    for (; list->name; list++) {
        printf("        '%s:", list->name);
        put_quoted(list->summary, ":\\", '\\');
        puts("'");
    }
    puts("    )");
}

static void zsh_begin(const struct command *all, describe_verbs verbs_of)
{
    (void)verbs_of;
    (void)all;
    puts("#compdef shoal\n"
         "# zsh completion for shoal; written by 'shoal completion zsh'.\n");
}

static void zsh_option(const struct opts_def *d)
{
    bool many = d->type == OPTS_LIST;
    fputs(" \\\n        ", stdout);
    if (d->letter && many)
        printf("'*'{-%c,--%s}", d->letter, d->name);
    else if (d->letter)
        printf("'(-%c --%s)'{-%c,--%s}", d->letter, d->name, d->letter, d->name);
    else
        printf("'%s--%s'", many ? "*" : "", d->name);
    fputs("'[", stdout);
    put_quoted(d->help, "[]:\\", '\\');
    putchar(']');
    if (d->type != OPTS_FLAG) {
        putchar(':');
        put_quoted(d->type == OPTS_CHOICE ? d->name : d->value, "[]:\\", '\\');
        putchar(':');
        if (d->type == OPTS_CHOICE) {
            putchar('(');
            put_choices(d->value);
            putchar(')');
        } else if (strcmp(d->value, "DIR") == 0) {
            fputs("_files -/", stdout);
        } else if (is_file(d->value)) {
            fputs("_files", stdout);
        }
    }
    putchar('\'');
}

static void zsh_page(const struct opts_page *page)
{
    fputs("_shoal_", stdout);
    for (const char *p = page->command; *p; p++)
        putchar(*p == ' ' ? '_' : *p);
    fputs("()\n{\n    _arguments -s -S", stdout);
    each_option(page, zsh_option);
    if (page->arguments[0]) {
        fputs(" \\\n        '*:", stdout);
        put_quoted(page->arguments, "[]:\\", '\\');
        printf(":%s'", is_file(page->arguments) ? "_files" : "");
    }
    puts("\n}\n");
}

static void zsh_end(const struct command *all, describe_verbs verbs_of)
{
    puts("_shoal()\n"
         "{\n"
         "    local curcontext=$curcontext state line\n"
         "    local -a shoal_commands shoal_verbs");
    zsh_list("shoal_commands", all);
    puts("    _arguments -C '--log-level:level:(error warn info debug)' "
         "'--log-format:format:(logfmt json)' \\\n"
         "        '1: :->command' '*:: :->rest'\n"
         "    case $state in\n"
         "    command) _describe command shoal_commands ;;\n"
         "    rest)");
    puts("        case $words[1] in");
    for (const struct command *c = all; c->name; c++)
        if (verbs_of(c->name)) {
            printf("        %s)\n", c->name);
            zsh_list("shoal_verbs", verbs_of(c->name));
            puts("        ;;");
        }
    puts("        esac");
    puts("        case $words[1] in\n"
         "        help) _describe command shoal_commands ;;\n"
         "        *)\n"
         "            if (( ! $#shoal_verbs )); then\n"
         "                (( $+functions[_shoal_$words[1]] )) && _shoal_$words[1]\n"
         "                return\n"
         "            fi\n"
         "            local shoal_command=$words[1]\n"
         "            _arguments -C '1: :->verb' '*:: :->rest_of_verb'\n"
         "            case $state in\n"
         "            verb) _describe verb shoal_verbs ;;\n"
         "            rest_of_verb)\n"
         "                (( $+functions[_shoal_${shoal_command}_$words[1]] )) &&\n"
         "                    _shoal_${shoal_command}_$words[1] ;;\n"
         "            esac\n"
         "            ;;\n"
         "        esac\n"
         "        ;;\n"
         "    esac\n"
         "}\n"
         "\n"
         "if [[ $funcstack[1] == _shoal ]]; then # found in $fpath\n"
         "    _shoal \"$@\"\n"
         "else # sourced\n"
         "    compdef _shoal shoal\n"
         "fi");
}

/* ---- fish ----------------------------------------------------------------------------------- */

/* The condition under which a page's options are offered. */
static void fish_when(const char *command)
{
    const char *verb = strchr(command, ' ');
    printf("complete -c shoal -n '__shoal_command_is %.*s",
           verb ? (int)(verb - command) : (int)strlen(command), command);
    if (verb)
        printf("; and __fish_seen_subcommand_from %s", verb + 1);
    putchar('\'');
}

static void fish_list(const char *when, const struct command *list)
{
    for (; list->name; list++) {
        printf("complete -c shoal -n '%s' -a %s -d '", when, list->name);
        put_quoted(list->summary, "", 0);
        puts("'");
    }
}

static void fish_begin(const struct command *all, describe_verbs verbs_of)
{
    puts("# fish completion for shoal; written by 'shoal completion fish'.\n"
         "complete -c shoal -f\n"
         "# Whether the first command on the line is this one; a verb may have the same name.\n"
         "function __shoal_command_is\n"
         "    for word in (commandline -opc)[2..-1]");
    fputs("        if contains -- $word ", stdout);
    put_names(all);
    puts("\n            test $word = $argv[1]\n            return\n        end\n    end\n"
         "    return 1\nend");
    fish_list("__fish_use_subcommand", all);
    for (const struct command *c = all; c->name; c++) {
        if (!verbs_of(c->name))
            continue;
        printf("set -l shoal_verbs_%s ", c->name);
        put_names(verbs_of(c->name));
        puts("");
        for (const struct command *v = verbs_of(c->name); v->name; v++) {
            printf("complete -c shoal -n \"__shoal_command_is %s; and not "
                   "__fish_seen_subcommand_from $shoal_verbs_%s\" -a %s -d '",
                   c->name, c->name, v->name);
            put_quoted(v->summary, "", 0);
            puts("'");
        }
    }
}

static void fish_option(const struct opts_page *page, const struct opts_def *d)
{
    fish_when(page->command);
    if (d->letter)
        printf(" -s %c", d->letter);
    printf(" -l %s", d->name);
    if (d->type == OPTS_CHOICE) {
        fputs(" -x -a '", stdout);
        put_choices(d->value);
        putchar('\'');
    } else if (d->type != OPTS_FLAG && strcmp(d->value, "DIR") == 0) {
        fputs(" -x -a '(__fish_complete_directories)'", stdout);
    } else if (d->type != OPTS_FLAG) {
        fputs(is_file(d->value) ? " -r -F" : " -x", stdout);
    }
    fputs(" -d '", stdout);
    put_quoted(d->help, "", 0);
    puts("'");
}

static void fish_page(const struct opts_page *page)
{
    for (size_t g = 0; g < OPTS_MAX_GROUPS && page->groups[g]; g++)
        for (size_t i = 0; i < page->groups[g]->n_defs; i++)
            fish_option(page, &page->groups[g]->defs[i]);
    for (size_t i = 0; i < opts_common.n_defs; i++)
        fish_option(page, &opts_common.defs[i]);
    if (is_file(page->arguments)) {
        fish_when(page->command);
        puts(" -F");
    }
}

static void fish_end(const struct command *all, describe_verbs verbs_of)
{
    (void)verbs_of;
    (void)all;
}

/* ---- man ------------------------------------------------------------------------------------ */

/* Text for roff: no line starts with a control character, and a minus stays a minus. */
static void roff(const char *text)
{
    bool first = true;
    for (; *text; text++) {
        if (first && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        first = *text == '\n';
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

/* Paragraphs: an empty line between two of them. */
static void roff_paragraphs(const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        puts(".PP");
        for (const char *p = text; p < text + n;) {
            size_t line = strcspn(p, "\n");
            line = p + line > text + n ? (size_t)(text + n - p) : line;
            char one[1024];
            snprintf(one, sizeof(one), "%.*s", (int)line, p);
            roff(one + strspn(one, " "));
            putchar('\n');
            p += line + 1;
        }
        text += n + (end ? 2 : 0);
    }
}

static void man_begin(const struct command *all, describe_verbs verbs_of)
{
    (void)verbs_of;
    puts(".\\\" Written by 'shoal manual'.\n"
         ".TH SHOAL 1 \"\" \"shoal " SHOAL_VERSION "\" \"User Commands\"\n"
         ".SH NAME\n"
         "shoal \\- small language models on your own machine\n"
         ".SH SYNOPSIS\n"
         ".B shoal\n"
         ".I command\n"
         "[\\fIoptions\\fR] [\\fIarguments\\fR]\n"
         ".SH DESCRIPTION\n"
         "Shoal runs small language models and specialists on this machine, and serves them over\n"
         "HTTP, gRPC and WebSocket.  Data goes to standard output, everything else to standard\n"
         "error.  An option may be written as \\fB\\-\\-name value\\fR or "
         "\\fB\\-\\-name=value\\fR;\n"
         "\\fB\\-\\-\\fR ends the options.\n"
         ".SH COMMANDS");
    for (; all->name; all++) {
        printf(".TP\n.B %s\n", all->name);
        roff(all->summary);
        putchar('\n');
    }
}

static void man_option(const struct opts_def *d)
{
    fputs(".TP\n", stdout);
    if (d->letter)
        printf("\\fB\\-%c\\fR, ", d->letter);
    fputs("\\fB\\-\\-", stdout);
    roff(d->name);
    fputs("\\fR", stdout);
    if (d->value) {
        fputs(" \\fI", stdout);
        roff(d->value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    roff(d->help);
    if (d->fallback) {
        fputs(" [", stdout);
        roff(d->fallback);
        putchar(']');
    }
    putchar('\n');
}

static void man_page(const struct opts_page *page)
{
    printf(".SH \"shoal %s\"\n.B shoal %s\n[\\fIoptions\\fR]", page->command, page->command);
    if (page->arguments[0]) {
        fputs(" \\fI", stdout);
        roff(page->arguments);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    roff_paragraphs(page->summary);
    if (page->details)
        roff_paragraphs(page->details);
    for (size_t g = 0; g < OPTS_MAX_GROUPS && page->groups[g]; g++) {
        printf(".SS \"%s\"\n", page->groups[g]->title);
        for (size_t i = 0; i < page->groups[g]->n_defs; i++)
            man_option(&page->groups[g]->defs[i]);
    }
    if (page->examples) {
        puts(".SS \"Examples\"\n.nf");
        roff(page->examples);
        puts(".fi");
    }
}

static void man_end(const struct command *all, describe_verbs verbs_of)
{
    (void)verbs_of;
    static const struct {
        const char *name, *text;
    } variables[] = {
        {"SHOAL_MODELS",
         "Folder of the models included with Shoal. Default: ./models, models next to the "
         "program, share/shoal/models of the prefix."},
        {"SHOAL_CACHE_DIR", "Cache of prepared weights, so that a model loads faster the next "
                            "time.  If the folder is not writable, nothing is cached."},
        {"XDG_CACHE_HOME", "Without SHOAL_CACHE_DIR: the cache is in its folder shoal."},
        {"SHOAL_COLLECTIONS",
         "Folder of collections of documents.  Default: collections in the state folder."},
        {"SHOAL_STORE", "The store of models: what is pulled, and what a node fetches.  Default: "
                        "store in STATE_DIRECTORY, or shoal/store in XDG_DATA_HOME."},
        {"SHOAL_TOKEN", "Access token for shoal pull and push."},
        {"SHOAL_RECIPES", "File with more recipes for shoal pull."},
        {"HF_TOKEN", "Access token of a Hugging Face hub."},
        {"HF_ENDPOINT", "URL of the hub that ORG/REPO is pulled from."},
        {"HF_HOME", "Folder of the hub's own tools: its token is used, and shoal import hf-cache "
                    "reads its cache."},
        {"HF_HUB_CACHE, OLLAMA_MODELS", "Where shoal import finds models."},
        {"PIP_INDEX_URL, npm_config_registry", "Indexes of the packages that recipes are in."},
        {"OLLAMA_REGISTRY", "Registry of ollama://NAME, as a URL."},
        {"STATE_DIRECTORY", "The state folder: sessions, schedules, open alarms, messages waiting "
                            "for a broker, and without SHOAL_STORE the store.  systemd sets it."},
        {"XDG_STATE_HOME", "Without STATE_DIRECTORY: the state folder is its folder shoal."},
        {"SHOAL_SERVER", "Address of a running server, for commands that query one."},
        {"SHOAL_HOST", "Address of a running server: chat and generate ask it instead of loading a "
                       "model, and commands that query one use it without SHOAL_SERVER."},
        {"NO_COLOR", "If it is not empty, nothing is coloured."},
        {"TERM", "If it is dumb, lines are read and shown plainly."},
        {"SHOAL_API_KEY", "Key that these commands send."},
        {"SHOAL_NATS", "Address of a NATS server for the verbs of shoal cluster."},
        {"SHOAL_CLUSTER", "Name of the shoal for the verbs of shoal cluster."},
        {"SHOAL_CERTS", "Folder with this member's certificate, for the verbs of shoal cluster."},
        {"SHOAL_CUDA",
         "The driver library of NVIDIA, libcuda.so.1, if it is not where it is searched."},
        {"SHOAL_CUDA_CODE", "A file with kernels for the GPU instead of those in the program."},
        {"SHOAL_ONNXRUNTIME",
         "The ONNX Runtime library, as a file or a folder.  Only ONNX models need it."},
        {"SHOAL_SYS_DIR", "The machine's folder /sys, for a container that sees it elsewhere."},
        {"XDG_DATA_HOME",
         "The store of models is its folder shoal/store; without SHOAL_ONNXRUNTIME "
         "its folder shoal/lib is searched too."},
        {"HOME", "Used for ~/.cache, ~/.local/share and ~/.local/state where the variables above "
                 "are not set."},
    };
    static const struct {
        const char *code, *text;
    } codes[] = {
        {"0", "done"},
        {"1", "failed; standard error says why"},
        {"2", "wrong usage"},
        {"130", "interrupted"},
    };
    (void)all;
    puts(".SH \"OPTIONS OF ALL COMMANDS\"");
    for (size_t i = 0; i < opts_common.n_defs; i++)
        man_option(&opts_common.defs[i]);
    puts(".SH ENVIRONMENT");
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        printf(".TP\n.B %s\n", variables[i].name);
        roff(variables[i].text);
        putchar('\n');
    }
    puts(".SH \"EXIT STATUS\"");
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        printf(".TP\n.B %s\n%s\n", codes[i].code, codes[i].text);
}

/* ---- forms ---------------------------------------------------------------------------------- */

static const struct form forms[DESCRIBE_N_FORMS] = {
    [DESCRIBE_BASH] = {"bash", bash_begin, bash_page, bash_end},
    [DESCRIBE_ZSH] = {"zsh", zsh_begin, zsh_page, zsh_end},
    [DESCRIBE_FISH] = {"fish", fish_begin, fish_page, fish_end},
    [DESCRIBE_MAN] = {"man", man_begin, man_page, man_end},
};

const char *describe_form_name(enum describe_form form)
{
    return forms[form].name;
}

void describe_begin(enum describe_form form, const struct command *all, describe_verbs verbs_of)
{
    forms[form].begin(all, verbs_of);
}

void describe_end(enum describe_form form, const struct command *all, describe_verbs verbs_of)
{
    forms[form].end(all, verbs_of);
}

bool describe_page(const struct opts_page *page, int argc, const char *const *argv)
{
    size_t n = strlen(DESCRIBE_OPTION);
    if (argc != 1 || strncmp(argv[0], DESCRIBE_OPTION, n) != 0)
        return false;
    for (size_t i = 0; i < DESCRIBE_N_FORMS; i++)
        if (strcmp(forms[i].name, argv[0] + n) == 0) {
            forms[i].page(page);
            return true;
        }
    return false;
}

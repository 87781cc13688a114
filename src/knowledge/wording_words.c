/* wording_words.c - lists of English words for wording.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "knowledge/wording.h"

/* Lists are words with single blanks around each of them. */
static bool in_list(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if (p > list && p[-1] == ' ' && p[n] == ' ')
            return true;
    return false;
}

static const char negations[] = " not no never none nothing nobody neither nor without cannot cant "
                                "dont doesnt didnt wont isnt arent nowhere hardly ";
static const char links[] = " a an the of to in at for by with and is are be been being am do does "
                            "doing would it its that as into i so then has have having "
                            "get got some just also per let lets o ";
static const char fillers[] =
    " please kindly hey hi hello ok okay explain describe step way procedure method instruction "
    "detail information info wonder question really actually thanks thank exactly "
    "simply currently now moment yet ";
static const char questions[] = " what who whom whose when where why how which ";
static const char owners[] = " my mine your yours his her hers their theirs our ours ";
static const char tenses[] = " will shall did was were had ";
static const char particles[] = " on off up down ";

enum wording_kind wording_kind_of(const char *word)
{
    static const struct {
        const char *list;
        enum wording_kind kind;
    } lists[] = {{negations, WORDING_NEGATION}, {questions, WORDING_QUESTION},
                 {owners, WORDING_OWNER},       {tenses, WORDING_TENSE},
                 {particles, WORDING_PARTICLE}, {links, WORDING_LINK},
                 {fillers, WORDING_FILLER}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (in_list(lists[i].list, word))
            return lists[i].kind;
    return WORDING_PLAIN;
}

/* One meaning a line; the first word stands for the others.  Stems, as wording_stem makes them.
 * Only words that can replace each other nearly everywhere: a wrong group is a wrong answer. */
static const char *const groups[] = {
    " turn switch put flip ",
    " begin start commence launch ",
    " end finish conclude ",
    " buy purchase ",
    " big large ",
    " biggest largest ",
    " reserve book ",
    " small little tiny ",
    " fix repair mend ",
    " remove delete erase uninstall ",
    " change alter modify edit ",
    " choose pick select ",
    " quick fast rapid swift ",
    " car automobile vehicle ",
    " photo picture image photograph ",
    " phone telephone cellphone smartphone mobile ",
    " email mail ",
    " movie film ",
    " doctor physician ",
    " price cost fee charge ",
    " cheap inexpensive affordable ",
    " expensive costly ",
    " light lamp ",
    " couch sofa ",
    " tv television telly ",
    " kid child children ",
    " shop store ",
    " close shut ",
    " make create build produce prepare ",
    " get obtain receive acquire ",
    " arrive come reach ",
    " depart leave ",
    " travel journey trip ",
    " error fault ",
    " sick ill unwell ",
    " smart clever intelligent ",
    " happy glad ",
    " sad unhappy ",
    " hard difficult tough ",
    " easy simple ",
    " often frequently ",
    " rarely seldom ",
    " city town ",
    " street road ",
    " garbage trash rubbish ",
    " holiday vacation ",
    " flat apartment ",
    " lift elevator ",
    " fall autumn ",
    " employee worker ",
    " customer client ",
    " answer reply respond response ",
    " forbid prohibit ban ",
    " speak talk ",
    " near nearby ",
    " house home ",
    " warranty guarantee ",
    " clean wash ",
    " decrease reduce lower ",
    " percent percentage ",
    " hour hr ",
    " kilogram kg kilo ",
    " kilometer km kilometre ",
    " centimeter cm centimetre ",
    " meter metre ",
    " liter litre ",
    " celsius centigrade ",
    " degree deg ",
    " dollar usd buck ",
    " euro eur ",
    " invoice bill ",
    " refund reimburse reimbursement ",
    " cancel terminate ",
    " password passcode ",
    " log sign ",
    " wifi wireless ",
    " internet web ",
    " computer pc ",
    " laptop notebook ",
    " battery accumulator ",
    " broken damaged defective faulty ",
    " meeting appointment ",
    " all every each entire whole ",
    " author writer ",
    " write compose ",
    " country nation ",
    " population populace ",
    " amount quantity ",
    " much many ",
    " contain include hold ",
    " use utilize employ ",
    " live reside dwell ",
    " work function operate run ",
    " safe secure ",
    " can could may might able possible allow permit ",
    " increase raise ",
    " need require ",
    " indoors inside ",
    " under below ",
    " latest newest ",
    " maximum maximal ",
    " minimum minimal ",
    " heater radiator ",
    " discount rebate ",
    " purpose aim goal ",
    " reason cause ",
    " difference distinction differ ",
    " main primary ",
    " download fetch ",
    " speed pace ",
    " loud noisy ",
    " silent quiet ",
    " recipe directions ",
    " dish meal ",
};

#define N_GROUPS (sizeof(groups) / sizeof(groups[0]))
#define MAX_GROUPED 1024u

struct grouped {
    char stem[WORDING_STEM_BYTES];
    char first[WORDING_STEM_BYTES];
};

static struct grouped grouped[MAX_GROUPED];
static size_t n_grouped;
static pthread_once_t grouped_once = PTHREAD_ONCE_INIT;

static int by_stem(const void *a, const void *b)
{
    return strcmp(((const struct grouped *)a)->stem, ((const struct grouped *)b)->stem);
}

/* Once, from the lists above: which are written as words. */
static void group(void)
{
    for (size_t i = 0; i < N_GROUPS; i++) {
        char first[WORDING_STEM_BYTES] = "";
        for (const char *p = groups[i] + 1; *p && n_grouped < MAX_GROUPED;) {
            size_t n = strcspn(p, " ");
            struct grouped *g = &grouped[n_grouped++];
            memcpy(g->stem, p, n);
            g->stem[n] = '\0';
            wording_stem(g->stem);
            if (!first[0])
                memcpy(first, g->stem, sizeof(first));
            memcpy(g->first, first, sizeof(first));
            p += n + 1;
        }
    }
    qsort(grouped, n_grouped, sizeof(grouped[0]), by_stem);
}

const char *wording_same(const char *stem)
{
    struct grouped key = {.stem = ""};
    if (strlen(stem) >= sizeof(key.stem))
        return stem;
    memcpy(key.stem, stem, strlen(stem) + 1);
    pthread_once(&grouped_once, group);
    const struct grouped *g = bsearch(&key, grouped, n_grouped, sizeof(key), by_stem);
    return g ? g->first : stem;
}

const char *wording_number(const char *word)
{
    static const char *const table[][2] = {
        {"zero", "0"},      {"one", "1"},         {"two", "2"},           {"three", "3"},
        {"four", "4"},      {"five", "5"},        {"six", "6"},           {"seven", "7"},
        {"eight", "8"},     {"nine", "9"},        {"ten", "10"},          {"eleven", "11"},
        {"twelve", "12"},   {"thirteen", "13"},   {"fourteen", "14"},     {"fifteen", "15"},
        {"sixteen", "16"},  {"seventeen", "17"},  {"eighteen", "18"},     {"nineteen", "19"},
        {"twenty", "20"},   {"thirty", "30"},     {"forty", "40"},        {"fifty", "50"},
        {"sixty", "60"},    {"seventy", "70"},    {"eighty", "80"},       {"ninety", "90"},
        {"hundred", "100"}, {"thousand", "1000"}, {"million", "1000000"}, {"billion", "1000000000"},
        {"half", "0.5"},    {"quarter", "0.25"},  {"dozen", "12"},        {"once", "1x"},
        {"twice", "2x"},    {"first", "1"},       {"second", "2"},        {"third", "3"},
        {"fourth", "4"},    {"fifth", "5"},       {"sixth", "6"},         {"seventh", "7"},
        {"eighth", "8"},    {"ninth", "9"},       {"tenth", "10"},        {"both", "2"},
        {"double", "2x"},   {"triple", "3x"},     {"single", "1"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i][0], word) == 0)
            return table[i][1];
    return NULL;
}

static bool ends_with(const char *word, size_t n, const char *end, size_t least)
{
    size_t k = strlen(end);
    return n >= k + least && strcmp(word + n - k, end) == 0;
}

void wording_stem(char *word)
{
    static const char *const irregular[][2] = {
        {"children", "child"}, {"men", "man"},       {"women", "woman"},   {"feet", "foot"},
        {"went", "go"},        {"gone", "go"},       {"bought", "buy"},    {"sent", "send"},
        {"made", "make"},      {"took", "take"},     {"taken", "take"},    {"wrote", "write"},
        {"written", "write"},  {"broke", "break"},   {"paid", "pay"},      {"left", "left"},
        {"lost", "lose"},      {"began", "begin"},   {"built", "build"},   {"spoke", "speak"},
        {"chose", "choose"},   {"chosen", "choose"}, {"forgot", "forget"}, {"forgotten", "forget"},
        {"stopped", "stop"},   {"stopping", "stop"}, {"running", "run"},   {"sitting", "sit"},
        {"setting", "set"},    {"getting", "get"},   {"putting", "put"},   {"news", "news"},
        {"bus", "bus"},        {"gas", "gas"},       {"less", "less"},     {"used", "use"},
        {"wi", "wifi"},        {"fi", "wifi"}};
    size_t n = strlen(word);
    for (size_t i = 0; i < sizeof(irregular) / sizeof(irregular[0]); i++)
        if (strcmp(irregular[i][0], word) == 0) {
            memcpy(word, irregular[i][1], strlen(irregular[i][1]) + 1);
            return;
        }
    if (ends_with(word, n, "ies", 2))
        memcpy(word + n - 3, "y", 2);
    else if (ends_with(word, n, "sses", 1) || ends_with(word, n, "ches", 2) ||
             ends_with(word, n, "shes", 2) || ends_with(word, n, "xes", 2))
        word[n - 2] = '\0';
    else if (ends_with(word, n, "s", 3) && word[n - 2] != 's' && word[n - 2] != 'u')
        word[n - 1] = '\0';
    n = strlen(word);
    if (ends_with(word, n, "ing", 3))
        word[n -= 3] = '\0';
    else if (ends_with(word, n, "ed", 3))
        word[n -= 2] = '\0';
    else
        n = n > 3 && word[n - 1] == 'e' ? n - 1 : n;
    if (n >= 4 && word[n - 1] == word[n - 2] && !strchr("lsz", word[n - 1]) && !word[n])
        n--;
    word[n] = '\0';
}

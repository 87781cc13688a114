/* home_table_reword.c - the part "reword" of a home table: rules that reword a text for the
 * models. */
#include "apps/home/table/home_table_int.h"

void home_table_read_reword(struct home_reader *r, const struct json_node *root)
{
    struct home_reword_table *w = &r->t->reword;
    struct json_node at = json_strict_get(root, "reword");
    if (!at.v || !json_strict_object(&r->d, &at, "",
                                     "fillers gerund wants tells reasons is manner each all "
                                     "everywhere except beside kept corrects "
                                     "from_now"))
        return;
    w->fillers = home_table_get_list(r, &at, "fillers", HOME_TEXT_PHRASE);
    w->gerund = home_table_get_list(r, &at, "gerund", HOME_TEXT_PHRASE);
    w->wants = home_table_get_pairs(r, &at, "wants", HOME_TEXT_PHRASE, 0, 0);
    w->tells = home_table_get_pairs(r, &at, "tells", HOME_TEXT_WORD, 0, 0);
    w->reasons = home_table_get_list(r, &at, "reasons", HOME_TEXT_PHRASE);
    w->is = home_table_get_list(r, &at, "is", HOME_TEXT_WORD);
    w->manner = home_table_get_list(r, &at, "manner", HOME_TEXT_PHRASE);
    w->each = home_table_get_list(r, &at, "each", HOME_TEXT_PHRASE);
    w->all = home_table_get_text(r, &at, "all", HOME_TEXT_WORD);
    w->everywhere = home_table_get_list(r, &at, "everywhere", HOME_TEXT_PHRASE);
    w->except = home_table_get_list(r, &at, "except", HOME_TEXT_PHRASE);
    w->beside = home_table_get_list(r, &at, "beside", HOME_TEXT_WORD);
    w->kept = home_table_get_list(r, &at, "kept", HOME_TEXT_WORD);
    w->corrects = home_table_get_list(r, &at, "corrects", HOME_TEXT_PHRASE);
    w->from_now = home_table_get_list(r, &at, "from_now", HOME_TEXT_PHRASE);
    if (r->d.rc == 0 && w->each.n > 0 && !w->all)
        json_strict_fail(&r->d, &at, "each needs the word \"all\"");
}

// TIDEMARK_SIM_RACES: the race checker for programs that do not start it.
#include "simulator/race.h"
#include "simulator/race_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VARIABLE "TIDEMARK_SIM_RACES"

static enum base_status bad(const char *text, const char *word) {
    return base_status_set(BASE_INVALID_VALUE,
                           VARIABLE "=%s: \"%s\": want off, or on or fail, then any of "
                                    ",quiet ,blocks-only ,rules=NAME+NAME... ,report=PATH",
                           text, word);
}

static enum base_status bad_rule(const char *text, const char *name) {
    char names[256];
    size_t length = 0;
    for (int rule = 0; rule < SIM_RACE_RULE_COUNT && length < sizeof names; ++rule)
        length +=
            (size_t)snprintf(names + length, sizeof names - length, "%s%s", rule == 0 ? "" : " ",
                             sim_race_rule_name((enum sim_race_rule)rule));
    return base_status_set(BASE_INVALID_VALUE, VARIABLE "=%s: there is no rule \"%s\": want %s",
                           text, name, names);
}

static bool rule_add(const char *name, uint32_t *rules) {
    for (int rule = 0; rule < SIM_RACE_RULE_COUNT; ++rule)
        if (strcmp(name, sim_race_rule_name((enum sim_race_rule)rule)) == 0) {
            *rules |= UINT32_C(1) << rule;
            return true;
        }
    return false;
}

static enum base_status rules_parse(const char *text, char *names, uint32_t *rules) {
    for (char *name = names; name != NULL;) {
        char *next = strchr(name, '+');
        if (next != NULL)
            *next++ = '\0';
        if (!rule_add(name, rules))
            return bad_rule(text, name);
        name = next;
    }
    return BASE_OK;
}

// WORD is one behind a comma; a path may be the last and have commas itself.
static enum base_status word_parse(const char *text, char *word, struct sim_race_options *options) {
    if (strcmp(word, "quiet") == 0)
        options->quiet = true;
    else if (strcmp(word, "blocks-only") == 0)
        options->blocks_only = true;
    else if (strncmp(word, "rules=", 6) == 0)
        return rules_parse(text, word + 6, &options->rules);
    else if (strncmp(word, "report=", 7) == 0 && word[7] != '\0')
        options->report_path = word + 7;
    else
        return bad(text, word);
    return BASE_OK;
}

// Cuts WORDS into what OPTIONS points to.
static enum base_status parse(const char *text, char *words, bool *is_on,
                              struct sim_race_options *options) {
    char *next = strchr(words, ',');
    if (next != NULL)
        *next++ = '\0';
    options->fail = strcmp(words, "fail") == 0;
    *is_on = options->fail || strcmp(words, "on") == 0;
    if (!*is_on && (strcmp(words, "off") != 0 || next != NULL))
        return bad(text, words);
    while (next != NULL) {
        char *word = next;
        next = strchr(word, ',');
        if (next != NULL && strncmp(word, "report=", 7) != 0)
            *next++ = '\0';
        else
            next = NULL;
        const enum base_status status = word_parse(text, word, options);
        if (status != BASE_OK)
            return status;
    }
    return BASE_OK;
}

enum base_status sim__races_from_environment(void) {
    const char *text = getenv(VARIABLE);
    struct sim_race_options options = {.rules = 0};
    bool is_on = false;
    if (text == NULL)
        return BASE_OK;
    char *words = strdup(text);
    if (words == NULL)
        return base_status_set(BASE_HOST_MEMORY, VARIABLE ": out of host memory");
    enum base_status status = parse(text, words, &is_on, &options);
    if (status == BASE_OK && is_on) {
        status = sim__race_start(&options);
        if (status != BASE_OK)
            status = base_status_prefix(status, VARIABLE);
    }
    free(words);
    return status;
}

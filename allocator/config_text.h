// The configuration string cut into tokens, and values read off them as PyTorch reads them.
//
// The separators `, : [ ]` are tokens; white space vanishes, even inside words (up to 2.8: blanks
// only).
#ifndef TIDEMARK_ALLOCATOR_CONFIG_TEXT_H
#define TIDEMARK_ALLOCATOR_CONFIG_TEXT_H

#include "allocator/config.h"

struct cca__tokens {
    char *text; // all tokens, each terminated
    char **token;
    size_t count;
};

enum base_status cca__tokens_init(struct cca__tokens *tokens, const char *text,
                                  bool blanks_only) BASE_MUST_USE;
void cca__tokens_deinit(struct cca__tokens *tokens);

// Where the walk stands. Keys are applied to `config` as they come.
struct cca__parser {
    const struct cca__tokens *tokens;
    size_t position;
    struct cca__config *config;
    bool strict; // PyTorch up to 2.8: separators are enforced, other words of refusal
    const struct cca_warning_observer *warnings; // may be NULL
};

// The sentence of a refused value: ours, then PyTorch's in brackets with the class of its error,
// since people search for it. WORDS is how much of TOKEN is quoted at most.
#define CCA__QUOTED "%.80s"
enum base_status cca__refuse(const char *class, const char *pytorch, const char *format, ...)
    BASE_PRINTF(3, 4);

// The next token; NULL past the end.
const char *cca__peek(const struct cca__parser *parser);
enum base_status cca__next_token(struct cca__parser *parser, const char *key,
                                 const char **token) BASE_MUST_USE;
// One token: WANTED up to 2.8; since then it is not looked at.
enum base_status cca__skip_separator(struct cca__parser *parser, const char *key,
                                     const char *wanted) BASE_MUST_USE;

// The value that stands behind KEY and its separator.
enum base_status cca__value_token(struct cca__parser *parser, const char *key,
                                  const char **token) BASE_MUST_USE;
enum base_status cca__value_integer(struct cca__parser *parser, const char *key,
                                    uint64_t *value) BASE_MUST_USE;
enum base_status cca__value_real(struct cca__parser *parser, const char *key,
                                 double *value) BASE_MUST_USE;
enum base_status cca__value_bool(struct cca__parser *parser, const char *key,
                                 bool *value) BASE_MUST_USE;

// std::stoull: a sign is allowed and wraps, text after the digits is ignored.
enum base_status cca__integer_of(const char *key, const char *token, uint64_t *value) BASE_MUST_USE;

// A size in MiB; what does not fit becomes the largest whole number of MiB, which is not
// "unlimited".
size_t cca__bytes_of_mib(uint64_t mib);

#endif

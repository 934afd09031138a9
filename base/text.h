// Text from strangers (names of files, words inside them), made fit to be shown: one line, no
// terminal sequences, valid UTF-8 for JSON and pages.
#ifndef TIDEMARK_BASE_TEXT_H
#define TIDEMARK_BASE_TEXT_H

#include <stddef.h>

// How many bytes the UTF-8 character at BYTES has, of the SIZE that are there; 0 if it is none.
size_t base_utf8_length(const char *bytes, size_t size);

// Control characters and bytes that are no UTF-8 become '?'. The length stays.
void base_text_clean(char *text);

#endif

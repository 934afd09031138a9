// docs/configuration.md, made from the table of keys and the rules of the lint.
#ifndef TIDEMARK_ALLOCATOR_CONFIG_PAGE_H
#define TIDEMARK_ALLOCATOR_CONFIG_PAGE_H

#include <stdio.h>

void config_page_print(FILE *output);

#endif

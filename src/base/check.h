// CHECK: our own mistake. Never for input: bad input is a Result or a diagnostic.
#pragma once

#include <cstdio>
#include <cstdlib>

#define JD_CHECK(condition)                                                              \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "joulediff: internal error: %s at %s:%d; please report it\n", \
                   #condition, __FILE__, __LINE__);                                      \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

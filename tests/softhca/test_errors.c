#include "endpoint.h"
const struct test_case error_cases[] = {{0}};

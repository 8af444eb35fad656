#include "endpoint.h"
const struct test_case order_cases[] = {{0}};

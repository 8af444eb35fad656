#include "endpoint.h"
const struct test_case fault_cases[] = {{0}};

#include "endpoint.h"
const struct test_case device_cases[] = {{0}};

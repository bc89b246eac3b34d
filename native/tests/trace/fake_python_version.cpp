// Says that Python is of the version FAKE_PYTHON_VERSION: what is known of that is wrong here.
#include <cstdlib>

extern "C" const char* Py_GetVersion() { return std::getenv("FAKE_PYTHON_VERSION"); }

// Releases the GIL for calls of the library.
#pragma once

#include <Python.h>

namespace waywiser::python {

// Releases the GIL for a scope. A thread whose scope ends after the interpreter has begun to end
// blocks here forever: taking the GIL then would end the thread through C++ frames, which aborts
// the process.
class GilRelease {
public:
    GilRelease() : state_(PyEval_SaveThread()) {}
    ~GilRelease();
    GilRelease(const GilRelease&) = delete;
    GilRelease& operator=(const GilRelease&) = delete;

private:
    PyThreadState* state_;
};

// Call it once with the GIL, in the thread that ends the interpreter.
void begin_exit();

}  // namespace waywiser::python

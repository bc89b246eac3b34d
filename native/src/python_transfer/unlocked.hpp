// The calls of the library are made without the GIL.
#pragma once

#include <Python.h>

namespace waywiser::python {

// Releases the GIL for a scope. A thread whose scope ends after the interpreter has begun to end
// stays here for ever: to take the GIL then would end the thread through frames of C++, which
// aborts the process.
class Unlocked {
public:
    Unlocked() : state_(PyEval_SaveThread()) {}
    ~Unlocked();
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    PyThreadState* state_;
};

// To be called once by the thread that ends the interpreter, with the GIL.
void begin_exit();

}  // namespace waywiser::python

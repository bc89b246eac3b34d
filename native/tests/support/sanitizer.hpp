// What makes a test program slow. Builds with a sanitizer link objects of tests that were compiled
// without one, so tests ask for it when they run.
#pragma once

namespace waywiser::test {

enum class Sanitizer { none, address, thread };

// The one that the library and the fake GPU of this program were compiled with.
Sanitizer sanitizer();

// Whether the program was compiled on another kind of machine, for an emulated one.
bool is_emulated();

}  // namespace waywiser::test

// The sanitizer of a test program. Builds with a sanitizer link objects of tests that were compiled
// without one, so tests ask for it when they run.
#pragma once

namespace waywiser::test {

enum class Sanitizer { none, address, thread };

// The one that the library and the fake GPU of this program were compiled with.
Sanitizer sanitizer();

}  // namespace waywiser::test

#include "nccl/fake_nccl.hpp"

namespace waywiser::test {

const char* fake_nccl_file() { return WAYWISER_FAKE_NCCL_FILE; }

}  // namespace waywiser::test

// The executor that a transfer names.
#pragma once

#include "waywiser/executor.hpp"

namespace waywiser::measure {

// Of a transfer that is supported: its executor is registered.
inline const Executor& executor_of(const Transfer& transfer) {
    return *Executors::instance().find(transfer.path.executor);
}

}  // namespace waywiser::measure

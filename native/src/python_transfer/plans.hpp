// Plans: operations that are submitted again and again.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>

#include "copies.hpp"
#include "operations.hpp"
#include "waywiser/transfer.h"

namespace waywiser::python {

// Prepared operations and the plan of the library for them. It keeps the arrays, and the files
// open. Create, use and destroy it with the GIL.
class TransferPlan : public std::enable_shared_from_this<TransferPlan> {
public:
    TransferPlan(Context context, PreparedOperations prepared);
    ~TransferPlan();
    TransferPlan(const TransferPlan&) = delete;
    TransferPlan& operator=(const TransferPlan&) = delete;

    // Starts the operations in the stream, or in those that the libraries of the arrays use now.
    // The transfer keeps this object until it has ended.
    Handle submit(const std::optional<void*>& requested);

private:
    Context context_;
    PreparedOperations prepared_;
    waywiser_plan* plan_ = nullptr;  // null: there is nothing to do
    unsigned process_;
};

using Plan = std::shared_ptr<TransferPlan>;

// Checks the operations and opens their files.
Plan plan_operations(const Context& context, nanobind::handle operations);

}  // namespace waywiser::python

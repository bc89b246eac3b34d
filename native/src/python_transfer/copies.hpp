// The calls of one context. All need the GIL and release it while they wait.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <string>

#include "contexts.hpp"
#include "pending_transfers.hpp"

namespace waywiser::python {

using Context = std::shared_ptr<ContextState>;
using Handle = std::shared_ptr<PendingTransfer>;

// The operands and the stream are what the caller passed; the stream may be None.
void copy(const Context& context, nanobind::handle to, nanobind::handle from,
          nanobind::handle stream);
Handle copy_async(const Context& context, nanobind::handle to, nanobind::handle from,
                  nanobind::handle stream);
void copy_batch(const Context& context, nanobind::handle to, nanobind::handle from,
                nanobind::handle stream);
Handle copy_batch_async(const Context& context, nanobind::handle to, nanobind::handle from,
                        nanobind::handle stream);
Handle snapshot_batch(const Context& context, nanobind::handle to, nanobind::handle from,
                      nanobind::handle stream);
void copy_blocks(const Context& context, nanobind::handle to, nanobind::handle from,
                 nanobind::handle to_index, nanobind::handle from_index, nanobind::handle stream);
Handle copy_blocks_async(const Context& context, nanobind::handle to, nanobind::handle from,
                         nanobind::handle to_index, nanobind::handle from_index,
                         nanobind::handle stream);

// `file` is a path, a descriptor or an object with fileno(). `bytes` None means the whole array.
std::size_t read_file(const Context& context, nanobind::handle file, nanobind::handle to,
                      nanobind::handle offset, nanobind::handle bytes, nanobind::handle stream);
Handle read_file_async(const Context& context, nanobind::handle file, nanobind::handle to,
                       nanobind::handle offset, nanobind::handle bytes, nanobind::handle stream);
std::size_t write_file(const Context& context, nanobind::handle file, nanobind::handle from,
                       nanobind::handle offset, nanobind::handle bytes, nanobind::handle truncate,
                       nanobind::handle sync, nanobind::handle stream);
Handle write_file_async(const Context& context, nanobind::handle file, nanobind::handle from,
                        nanobind::handle offset, nanobind::handle bytes, nanobind::handle truncate,
                        nanobind::handle sync, nanobind::handle stream);

// Describes what copy(), copy_blocks() or copy_batch() would do; None: not given.
std::string explain(const Context& context, nanobind::handle to, nanobind::handle from,
                    nanobind::handle to_index, nanobind::handle from_index,
                    nanobind::handle destinations, nanobind::handle sources);
// How one copy would be made: "none", "plain", "chunked" or "list".
std::string copy_method(const Context& context, nanobind::handle to, nanobind::handle from);
nanobind::dict usage(const Context& context);
nanobind::dict stats(const Context& context);
std::vector<std::string> warnings(const Context& context);

}  // namespace waywiser::python

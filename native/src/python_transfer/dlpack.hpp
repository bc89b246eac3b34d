// The structures of DLPack 1.x that this module reads: https://dmlc.github.io/dlpack
#pragma once

#include <cstdint>

namespace waywiser::python::dlpack {

enum DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };

struct Device {
    std::int32_t type;
    std::int32_t index;
};

struct DataType {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct Tensor {
    void* data;
    Device device;
    std::int32_t dimensions;
    DataType dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements; may be null: C order
    std::uint64_t byte_offset;
};

struct Version {
    std::uint32_t major;
    std::uint32_t minor;
};

struct ManagedTensor {  // capsule "dltensor"
    Tensor tensor;
    void* manager;
    void (*deleter)(ManagedTensor*);
};

constexpr std::uint64_t kReadOnly = 1;
constexpr std::uint64_t kIsCopied = 2;

struct ManagedTensorVersioned {  // capsule "dltensor_versioned"
    Version version;
    void* manager;
    void (*deleter)(ManagedTensorVersioned*);
    std::uint64_t flags;
    Tensor tensor;
};

// The content of a type's __dlpack_c_exchange_api__, a capsule "dlpack_exchange_api".
struct ExchangeApi {
    Version version;
    ExchangeApi* previous;
    void* managed_tensor_allocator;
    void* managed_tensor_from_py_object;
    void* managed_tensor_to_py_object;
    // Borrows: shape and strides belong to the object. Returns 0, or -1 with a Python error. May be
    // null.
    int (*tensor_from_py_object)(void* object, Tensor* tensor);
    int (*current_work_stream)(std::int32_t device_type, std::int32_t device, void** stream);
};

}  // namespace waywiser::python::dlpack

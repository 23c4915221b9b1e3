#pragma once
// A library that is loaded at first use: the program starts without it.

#include <dlfcn.h>

#include <string>

#include "core/error.h"

/// The name of a library's file. scripts/gpu_check.sh searches the program for it, so it is one
/// string literal.
#define BAMTRAIN_TEXT_OF(version) #version
#define BAMTRAIN_SONAME(name, version) name ".so." BAMTRAIN_TEXT_OF(version)

namespace bamtrain::cuda {

class LoadedLibrary {
 public:
  /// `file`: "libnccl.so.2". `product`: the name its users know. Throws Error with `code` if the
  /// library or one of its functions is missing; `remedy` is for a missing library. It stays loaded
  /// until the program ends.
  LoadedLibrary(const char* file, const char* product, ExitCode code, const char* remedy)
      : file_(file), product_(product), code_(code), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw Error::fault(code, product, dlerror(), remedy);
  }

  /// A function of the library; converts to a pointer of the function's own type.
  class Symbol {
   public:
    explicit Symbol(void* address) : address_(address) {}
    template <class Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Function*>(address_);
    }

   private:
    void* address_;
  };
  Symbol operator[](const char* name) const {
    void* const address = dlsym(handle_, name);
    if (address == nullptr) {
      throw Error::fault(
          code_, file_, std::string("no function ") + name,
          std::string("install the ") + product_ + " that this program was built with");
    }
    return Symbol(address);
  }

 private:
  const char* file_;
  const char* product_;
  ExitCode code_;
  void* handle_;
};

}  // namespace bamtrain::cuda

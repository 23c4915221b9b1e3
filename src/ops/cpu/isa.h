#pragma once
// One binary for processors of different ages: the compute files of the CPU backend (all but
// cpu.cpp and matmul.cpp) are compiled once per instruction set, each time into a separate
// namespace; cpu.cpp chooses among them at run time. The namespace is inline, so the code inside
// reads as if there were only one.
//
// What these files use from outside must be inline in them or compiled elsewhere. If the linker
// merged a function with another file's copy, newer instructions would reach code that every
// processor runs. tests/ops/isa.cpp searches the program for such functions.

#ifndef BAMTRAIN_ISA
#define BAMTRAIN_ISA this_machine  // for tests that include the headers
#endif

namespace bamtrain {

/// In ascending order; the last has bf16 products, which bf16 attention uses.
enum class CpuIsa { avx2, avx512, avx512_amx };
constexpr CpuIsa kNewestIsa = CpuIsa::avx512_amx;

}  // namespace bamtrain

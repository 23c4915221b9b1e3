#pragma once
// One binary for processors of different age: the files of the CPU backend that compute (all but
// cpu.cpp and matmul.cpp) are compiled once per instruction set, each time into a namespace of its
// own, and cpu.cpp chooses among them at run time. The namespace is inline, so that the code inside
// reads as if there were one only.
//
// What these files take from outside must be inline in them or compiled elsewhere: a function that
// the linker may merge with the copy of another file would carry newer instructions to places that
// every processor runs. tests/ops/isa.cpp looks for such functions in the program.

#ifndef BAMTRAIN_ISA
#define BAMTRAIN_ISA this_machine  // tests that include the headers
#endif

namespace bamtrain {

/// In ascending order; the last has products of bf16, which attention in bf16 uses.
enum class CpuIsa { avx2, avx512, avx512_amx };
constexpr CpuIsa kNewestIsa = CpuIsa::avx512_amx;

}  // namespace bamtrain

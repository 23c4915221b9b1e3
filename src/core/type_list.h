#pragma once
// A list of types. Each kind of mechanism has one, in one header; enums, registries and run-time
// template dispatch are generated from it.

namespace bamtrain {

template <class... T>
struct TypeList {};

/// Calls f.template operator()<T>() for the type at `index`; host only.
template <class... T, class F>
void with_type(TypeList<T...>, int index, const F& f) {
  int n = 0;
  (void)((n++ == index && (f.template operator()<T>(), true)) || ...);
}

}  // namespace bamtrain

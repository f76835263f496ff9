// What follows a kernel's text: a way to call its entry with an array of pointers to arguments.
namespace tw::emulator {

template <class T> T argument(void *from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <int... I> struct Indices {};
template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
template <int... I> struct Count<0, I...> { typedef Indices<I...> type; };

template <class... A, int... I> void unpack(void (*entry)(A...), void **arguments, Indices<I...>) {
  entry(argument<A>(arguments[I])...);
}

template <class... A> void call(void (*entry)(A...), void **arguments) {
  unpack(entry, arguments, typename Count<sizeof...(A)>::type{});
}

}  // namespace tw::emulator

#define TW_ENTRY(name) \
  extern "C" void tw_call_##name(void **arguments) { tw::emulator::call(name, arguments); }
